from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.reporters.html import charts
from pipediag.reporters.html.charts import run_timeline
from pipediag.session.ledger import RunSpan
from pipediag.vocabulary import RunPartName
from tests import factories, records
from tests.ledgers import make_run


def test_segments_fill_the_bar_and_skip_empty_classes() -> None:
    segments = charts.breakdown_segments(records.make_breakdown())

    assert [segment.name for segment in segments] == [
        "input_wait",
        "device_compute",
        "dispatch",
        "python",
        "unattributed",
    ]
    assert segments[0].start == 0.0
    assert segments[-1].start + segments[-1].width == pytest.approx(100.0)


def test_a_label_must_fit_its_segment() -> None:
    [segment, *_] = charts.breakdown_segments(
        records.make_breakdown(input_wait=20.0, device_compute=80.0)
    )

    assert segment.fits("Waiting for input", narrow=False)
    assert not segment.fits("Waiting for input", narrow=True)


@given(st.lists(st.floats(0.01, 1e5), min_size=1, max_size=2000))
def test_strip_has_a_stroke_a_bucket_within_the_drawing(samples: list[float]) -> None:
    median = sorted(samples)[len(samples) // 2]
    steps = records.make_steps(samples_ms=samples, median_ms=median, p95_ms=max(samples))

    strip = charts.step_strip(factories.make_session(steps=steps))

    assert strip is not None
    assert strip.count == len(samples)
    assert strip.buckets == min(len(samples), charts.MAX_BUCKETS)
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

    strip = charts.step_strip(factories.make_session(steps=steps))

    assert strip is not None
    tall = [stroke for stroke in strip.path.split("M")[1:] if stroke.split("V")[1] == "7.4"]
    assert len(tall) == 1
    assert strip.clipped == 0


def test_strip_clips_what_would_flatten_the_rest_and_counts_it() -> None:
    steps = records.make_steps(samples_ms=[10.0] * 99 + [900.0], p95_ms=10.5)

    strip = charts.step_strip(factories.make_session(steps=steps))

    assert strip is not None
    assert strip.clipped == 1
    assert strip.longest_ms == 900.0
    assert strip.scale_ms < 12.0


def test_no_samples_no_strip() -> None:
    assert charts.step_strip(factories.make_session(steps=None)) is None
    empty = records.make_steps(samples_ms=[])
    assert charts.step_strip(factories.make_session(steps=empty)) is None


def test_whisker_stays_in_the_drawing() -> None:
    assert charts.whisker(50.0, (-3.0, 130.0)) == charts.Whisker(50.0, 0.0, 100.0)


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
