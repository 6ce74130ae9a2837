"""The ratio of step times, on numbers made by hand; nothing is timed here."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.comparison import (
    BaselineSteps,
    Ratio,
    UnusableRunError,
    agreement,
    baseline_spans,
    baseline_steps,
    nearest,
    step_time_ratio,
    steps_inside,
    summarise,
)
from benchmarks.overhead import Rounds, report, table
from pipediag.session.recorded_windows import RecordedBlock, RecordedWindow
from pipediag.session.recording import RecordedEnvironment, Recording
from pipediag.vocabulary import WindowKind


def stamps(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def window(
    kind: WindowKind, *blocks: tuple[int, list[int]], complete: bool = True
) -> RecordedWindow:
    """Blocks are given by their begin and the durations of their steps."""
    recorded = [
        RecordedBlock(
            starts_ns=[begin + sum(durations[:i]) for i in range(len(durations))],
            durations_ns=durations,
        )
        for begin, durations in blocks
    ]
    return RecordedWindow(kind, "loop1", 0, 0, recorded, complete)


def recording(*windows: RecordedWindow) -> Recording:
    return Recording(
        format=1,
        pid=1,
        started_ns=0,
        outcome="stopped",
        exit_status=None,
        ended_ns=None,
        stop_reason=None,
        error=None,
        environment=RecordedEnvironment(python="3.11", executable="python"),
        windows=list(windows),
    )


def test_only_steps_that_lie_inside_a_span_count() -> None:
    clock = stamps(0, 10, 20, 30, 40, 50, 60)
    # Step 1 begins at 10 and ends at 20; the span from 15 leaves it out.
    assert steps_inside(clock, [(10, 30), (35, 60)]).tolist() == [1, 2, 4, 5]
    assert steps_inside(clock, [(15, 30)]).tolist() == [2]
    assert steps_inside(clock, [(21, 29)]).tolist() == []
    assert steps_inside(clock, []).tolist() == []


def test_spans_are_the_blocks_of_complete_baseline_windows() -> None:
    recorded = recording(
        window("warmup", (0, [5, 5])),
        window("baseline", (100, [10, 12]), (200, [11]), (300, [])),
        window("baseline", (400, [9]), complete=False),
        window("profile", (500, [20])),
    )
    assert baseline_spans(recorded) == [(100, 122), (200, 211)]


def test_the_disturbed_step_between_two_blocks_is_left_out() -> None:
    recorded = recording(window("baseline", (10, [10, 11]), (75, [10])))
    # The script's clock ticks just before pipediag's; the step from 29 to 74 held a reading.
    found = baseline_steps(stamps(-1, 9, 19, 29, 74, 85, 95), recorded)
    assert found.positions.tolist() == [2]
    assert found.durations_ns.tolist() == [10]
    assert found.recorded_ns.tolist() == [11]


def test_each_step_is_held_against_the_nearest_recorded_one() -> None:
    assert nearest(stamps(10, 20, 40), stamps(0, 9, 16, 29, 31, 90)).tolist() == [0, 0, 1, 1, 2, 2]
    assert nearest(stamps(10), stamps(0, 90)).tolist() == [0, 0]


def test_a_run_without_a_baseline_is_unusable_and_says_how_it_ended() -> None:
    with pytest.raises(UnusableRunError, match="the script stopped after 3 steps"):
        baseline_steps(stamps(0, 10, 20), recording(window("warmup", (0, [10, 10]))))


def test_the_bare_run_is_taken_at_the_same_positions() -> None:
    watched = BaselineSteps(stamps(1, 2, 3), stamps(21, 22, 23), stamps(22))
    # Durations 100, 20, 20, 20, 100: only those at 1 to 3 are compared.
    bare = stamps(0, 100, 120, 140, 160, 260)
    assert step_time_ratio(bare, watched) == pytest.approx(1.1)


def test_a_bare_run_that_is_too_short_is_unusable() -> None:
    watched = BaselineSteps(stamps(1, 2), stamps(20, 20), stamps(20))
    with pytest.raises(UnusableRunError, match="ended after 2 steps, before step 2"):
        step_time_ratio(stamps(0, 20, 40), watched)


def test_agreement_is_the_recorded_step_over_the_scripts_own() -> None:
    watched = BaselineSteps(stamps(0, 1, 2), stamps(10, 20, 30), stamps(20, 21, 22))
    assert agreement(watched) == pytest.approx(1.05)


def test_equal_rounds_have_a_point_for_an_interval() -> None:
    assert summarise([1.01, 1.01, 1.01]) == Ratio(1.01, 1.01, 1.01, 3)


def test_the_interval_holds_the_median_and_stays_within_the_rounds() -> None:
    ratio = summarise([0.99, 1.0, 1.01, 1.02, 1.03])
    assert ratio.median == pytest.approx(1.01)
    assert 0.99 <= ratio.low < ratio.median < ratio.high <= 1.03


@pytest.mark.parametrize(
    ("low", "high", "judgement"),
    [(1.0, 1.02, "met"), (1.01, 1.03, "undecided"), (1.021, 1.03, "missed")],
)
def test_the_goal_is_met_missed_or_undecided(low: float, high: float, judgement: str) -> None:
    assert Ratio(1.015, low, high, 6).judgement == judgement


def test_few_rounds_decide_nothing() -> None:
    assert Ratio(1.0, 1.0, 1.0, 5).judgement == "undecided (too few rounds)"


def test_a_round_gives_both_ratios_and_the_bare_step() -> None:
    rounds = Rounds()
    bare = stamps(0, 2_000_000, 4_000_000, 6_000_000)
    captured = BaselineSteps(stamps(1, 2), stamps(2_020_000, 2_020_000), stamps(2_020_000))
    sampled = BaselineSteps(stamps(1, 2), stamps(2_100_000, 2_100_000), stamps(2_100_000))
    rounds.add(bare, captured, sampled)
    assert rounds.bare_ms == [pytest.approx(2.0)]
    assert rounds.capture_ratio == [pytest.approx(1.01)]
    assert rounds.analyze_ratio == [pytest.approx(1.05)]
    assert rounds.agreement == [pytest.approx(1.0)]


def test_rounds_that_were_left_out_are_counted() -> None:
    rounds = Rounds([2.0], [1.0], [1.0], [1.0], left_out=["the script left no recording"])
    assert "1 rounds, 1 left out" in table({"some_loop": rounds})


def test_the_table_names_workload_ratio_interval_and_judgement() -> None:
    rounds = Rounds([2.0] * 6, [1.01] * 6, [1.05] * 6, [1.0] * 6)
    text = table({"some_loop": rounds})
    assert "some_loop: bare step 2.000 ms, 6 rounds" in text
    assert "capture  1.0100 [1.0100, 1.0100]  goal met" in text
    assert "analyze  1.0500 [1.0500, 1.0500]  goal missed" in text
    assert report({"some_loop": rounds}, [])["workloads"]["some_loop"]["analyze"]["median"] == 1.05
