"""The geometry of the page's drawings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.reporters.html import drawings
from pipediag.reporters.html.drawings import round_ratios, run_timeline, trial_chart
from pipediag.session.ledger import RunSpan
from pipediag.session.record import Interval
from pipediag.session.trials import NOT_TRIED, Trial
from pipediag.vocabulary import RunPartName
from tests import factories, records
from tests.ledgers import make_run
from tests.reporters import trial_sessions


def test_segments_fill_the_bar_and_skip_empty_classes() -> None:
    segments = drawings.step_bar(records.make_breakdown())
    assert [segment.kind for segment in segments] == [
        "input_wait",
        "device_compute",
        "dispatch",
        "python",
        "unattributed",
    ]
    assert sum(segment.width for segment in segments) == pytest.approx(100.0)


@given(st.lists(st.floats(0.01, 1e5), min_size=1, max_size=2000))
def test_strip_has_a_stroke_a_bucket_within_the_drawing(samples: list[float]) -> None:
    median = sorted(samples)[len(samples) // 2]
    steps = records.make_steps(samples_ms=samples, median_ms=median, p95_ms=max(samples))
    strip = drawings.step_strip(factories.make_session(steps=steps))
    assert strip is not None
    assert strip.count == len(samples)
    assert strip.buckets == min(len(samples), drawings.MAX_BUCKETS)
    strokes = strip.path.split("M")[1:]
    assert len(strokes) == strip.buckets
    for stroke in strokes:
        start, high = stroke.split("V")
        x, low = map(float, start.split())
        assert 0 <= x <= 1000
        assert 0 <= float(high) <= low <= 100


def test_strip_keeps_the_extremes_of_a_bucket() -> None:
    samples = [10.0] * 5000
    samples[1234] = 20.0
    steps = records.make_steps(samples_ms=samples, p95_ms=10.0)
    strip = drawings.step_strip(factories.make_session(steps=steps))
    assert strip is not None
    tall = [stroke for stroke in strip.path.split("M")[1:] if stroke.split("V")[1] == "7.4"]
    assert len(tall) == 1
    assert strip.clipped == 0


def test_strip_clips_what_would_flatten_the_rest_and_counts_it() -> None:
    steps = records.make_steps(samples_ms=[10.0] * 99 + [900.0], p95_ms=10.5)
    strip = drawings.step_strip(factories.make_session(steps=steps))
    assert strip is not None
    assert strip.clipped == 1
    assert strip.longest_ms == 900.0
    assert strip.scale_ms < 12.0


def test_no_samples_no_strip() -> None:
    assert drawings.step_strip(factories.make_session(steps=None)) is None
    empty = records.make_steps(samples_ms=[])
    assert drawings.step_strip(factories.make_session(steps=empty)) is None


def test_the_run_as_it_passed_has_its_parts_in_order_and_no_stretch_too_short_to_see() -> None:
    def span(part: RunPartName | None, start_ms: float, duration_ms: float) -> RunSpan:
        return RunSpan(part=part, start_ms=start_ms, duration_ms=duration_ms)

    spans = [
        span("steps", 500.0, 499.9),
        span("before_training", 0.0, 400.0),
        span(None, 400.0, 100.0),
        span("epoch_end", 999.9, 0.1),
    ]
    found = run_timeline(make_run(spans=spans))
    assert [one.part for one in found] == ["before_training", None, "steps", "epoch_end"]
    assert [round(one.start) for one in found] == [0, 40, 50, 100]
    tiny = [span("steps", 0.1 * at, 0.1) for at in range(1000)]
    assert len(run_timeline(make_run(spans=tiny))) == 1
    assert run_timeline(None) == []


EDIT = trial_sessions.PARALLEL.id
OTHER = trial_sessions.BATCH.id


def run_of(ratios: dict[str, list[float]]) -> trial_sessions.TrialRun:
    return trial_sessions.make_run(blocks=trial_sessions.make_blocks(ratios))


def found(speedup: float, bounds: Interval) -> Trial:
    return Trial(state="confirmed", reason=None, speedup=speedup, ci95=bounds, blocks=8)


def test_a_ratio_for_each_round_with_both_arms() -> None:
    run = run_of({EDIT: [2.0, 1.9], OTHER: [1.5, 1.4, 1.6]})
    assert round_ratios(run, [EDIT]) == pytest.approx([2.0, 1.9])
    assert round_ratios(run, [OTHER]) == pytest.approx([1.5, 1.4, 1.6])


def test_the_combination_is_found_in_whatever_order_its_edits_are_named() -> None:
    run = run_of({EDIT: [2.0], f"{OTHER} + {EDIT}": [3.0, 3.2]})
    assert round_ratios(run, [EDIT, OTHER]) == pytest.approx([3.0, 3.2])


def test_nothing_to_draw() -> None:
    assert trial_chart(None, [EDIT], found(2.0, (1.9, 2.1))) is None
    assert trial_chart(run_of({OTHER: [1.5]}), [EDIT], NOT_TRIED) is None
    assert trial_chart(run_of({OTHER: [1.5]}), [], NOT_TRIED) is None


@given(
    st.lists(st.floats(0.05, 50.0), min_size=1, max_size=40),
    st.floats(0.05, 50.0),
    st.floats(0.0, 20.0),
)
def test_everything_lies_within_the_drawing(ratios: list[float], low: float, width: float) -> None:
    chart = trial_chart(run_of({EDIT: ratios}), [EDIT], found(low + width / 2, (low, low + width)))
    assert chart is not None
    assert chart.interval is not None
    assert len(chart.rounds) == len(ratios)
    assert all(0 < x < 100 for x in (*chart.rounds, *chart.interval, chart.nothing_gained))


def test_what_the_pipeline_alone_did_is_called_so() -> None:
    session = trial_sessions.pipeline_only()
    chart = trial_chart(session.trials, [EDIT], session.findings[0].trial)
    assert chart is not None
    assert "of the pipeline alone" in chart.words
