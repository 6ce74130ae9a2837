"""The run's ledger and the step in words."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.reporters.words import run
from pipediag.reporters.words.step import (
    SelfCheck,
    agreement,
    free_input,
    self_checks,
)
from pipediag.session.ledger import RunGain
from pipediag.session.loops import Ceiling, Differential
from pipediag.session.model import Session
from pipediag.session.trials import PipelineAlone
from tests import factories, records
from tests.factories import make_session
from tests.reporters import trial_sessions


def gain(**overrides: object) -> RunGain:
    values = {
        "speedup": 1.5,
        "before_s": 24.6,
        "after_s": 16.4,
        "basis": "measured",
        "scope": "run",
    }
    return RunGain.model_validate({**values, **overrides})


def test_parts_come_in_the_order_of_a_run_with_their_places() -> None:
    parts = run.parts_of(factories.make_run().parts)
    assert [part.name for part in parts] == ["startup", "before_training", "steps", "epoch_end"]
    assert [part.seconds for part in parts] == [2.5, 2.5, 5.0, 10.0]
    assert [part.basis for part in parts] == ["measured", "measured", "projected", "projected"]
    assert [row.what for row in parts[1].rows] == ["in `parse`"]


def test_what_the_percents_are_of() -> None:
    def whole(**overrides: object) -> str:
        return run.whole(factories.make_run(**overrides)).replace("\u00a0", " ")

    assert whole() == "The run would take 20.0 s, 10 epochs; 8.00 s of it were seen"
    assert whole(projected_total_s=None, epochs_planned=None) == "The run took 8.00 s"
    over = {"projected_total_s": None, "epochs_planned": 100, "epochs_seen": 12.0}
    assert whole(**over) == "The run took 8.00 s, 12 epochs"
    failed = whole(**over, projected_missing="It did not come to its end.")
    assert failed == "The run took 8.00 s, 12 epochs begun"
    assert whole(scope="epoch") == "Of an epoch, 20.0 s"
    assert whole(scope="1000_steps") == "Of 1,000 steps, 20.0 s"


@pytest.mark.parametrize(
    ("scope", "once_s", "ending"),
    [
        ("run", 0.6, "16.4 s, with 0.60 s more once to trace and compile)"),
        ("run", -2.0, "16.4 s, with 2.00 s less once to trace and compile)"),
        ("epoch", 0.6, "16.4 s, and 0.60 s more once to trace and compile)"),
        ("run", 0.01, "16.4 s)"),
        ("run", None, "16.4 s)"),
    ],
)
def test_what_is_traced_once_more_stands_behind_its_seconds(
    scope: str, once_s: float | None, ending: str
) -> None:
    words = run.gain(gain(scope=scope, once_s=once_s))
    assert words is not None
    assert words.replace("\u00a0", " ").endswith(ending)


def with_ceiling(speedup: float | None) -> Session:
    ceiling = Ceiling(speedup_if_input_free=speedup, next_bottleneck="device_compute")
    return make_session(ceiling=ceiling)


def test_free_input_is_one_upper_bound_with_what_limits_then() -> None:
    assert free_input(with_ceiling(3.33)) == "at most 3.33x; then device compute limits"


def measured(consumer: float, pipeline: float, both: float, wait_percent: float) -> Session:
    return factories.make_session(
        steps=records.make_steps(mean_ms=both),
        breakdown=records.make_breakdown(
            both, input_wait=wait_percent, device_compute=100 - wait_percent
        ),
        differential=Differential(
            step_ms=consumer, ci95_ms=(consumer, consumer), steps=30, input_share_percent=0.0
        ),
        pipeline_alone=PipelineAlone(step_ms=pipeline, ci95_ms=None, blocks=4),
    )


@pytest.mark.parametrize(
    ("consumer", "pipeline", "both", "sentence"),
    [
        (3.0, 9.8, 10.0, "they overlap, and the pipeline sets the pace"),
        (9.0, 4.0, 9.3, "they overlap, and the consumer sets the pace"),
        (5.0, 6.0, 10.8, "they do not overlap"),
        (5.0, 6.0, 8.5, "overlap in part, or compete for the CPU"),
        (3.0, 4.0, 9.0, "they hinder each other"),
        (3.0, 12.0, 8.0, "the three do not fit together"),
    ],
)
def test_how_the_three_fit(consumer: float, pipeline: float, both: float, sentence: str) -> None:
    assert sentence in (agreement(measured(consumer, pipeline, both, 50.0)) or "")


def test_the_breakdown_is_held_against_the_consumer_alone() -> None:
    agrees = agreement(measured(3.0, 9.8, 10.0, 70.0)) or ""
    differs = agreement(measured(3.0, 9.8, 10.0, 20.0)) or ""
    assert "and the breakdown agrees (70.0" in agrees
    assert "but the breakdown rests on what was measured without it (20.0" in differs


def test_a_breakdown_that_rests_on_the_same_batch_is_no_second_witness() -> None:
    session = measured(3.0, 9.8, 10.0, 70.0).model_copy(
        update={"input_wait": records.make_input_wait(method="differential")}
    )
    assert "breakdown" not in (agreement(session) or "")


def checks(**overrides: Any) -> list[SelfCheck]:
    return self_checks(factories.make_session(**overrides))


def test_three_pairs_with_how_far_they_are_apart() -> None:
    time = factories.make_loop_time(total_s=20.0, unexplained_s=4.0)
    loop, base, ledger = checks(
        loops=[factories.make_loop(time=time)],
        steps=records.make_steps(mean_ms=10.0),
        trials=trial_sessions.make_run(base_step_ms=10.5),
        run=factories.make_run(total_s=8.0, pipediag_s=1.5),
        wall_s=9.4,
    )
    assert (loop.word, loop.off) == ("differ", "+25.0\xa0%")
    assert (loop.here, loop.there) == (
        "16.0\xa0s by the steps' mean, waits and epochs' ends",
        "20.0\xa0s in the loop",
    )
    assert (base.word, base.off) == ("agree", "+5.0\xa0%")
    assert (base.here[:7], base.there[:7]) == ("10.0\xa0ms", "10.5\xa0ms")
    assert (ledger.word, ledger.off) == ("agree", "-1.1\xa0%")
    assert (ledger.here[:6], ledger.there[:6]) == ("9.50\xa0s", "9.40\xa0s")
    assert all(check.means for check in (loop, base, ledger))


def test_what_can_not_be_compared_has_a_reason_and_no_figure() -> None:
    loop, base, ledger = checks(
        loops=[factories.make_loop(time=None, time_missing="no-time-reason")],
        trials=None,
        trials_missing="no-trials-reason",
        run=None,
        run_missing="no-run-reason",
    )
    assert [check.means for check in (loop, base, ledger)] == [
        "no-time-reason",
        "no-trials-reason",
        "no-run-reason",
    ]
    assert {(c.here, c.off_percent, c.word) for c in (loop, base, ledger)} == {
        ("", None, "not compared")
    }
