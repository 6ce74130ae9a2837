from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.reporters.html import charts
from tests import factories, records


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


def test_a_histogram_only_where_mean_and_median_disagree() -> None:
    samples = [10.0] * 90 + [100.0] * 9 + [5000.0]
    steps = records.make_steps(
        count=100, samples_ms=samples, mean_ms=68.0, median_ms=10.0, p95_ms=100.0
    )

    drawn = charts.step_histogram(factories.make_session(steps=steps))

    assert drawn is not None
    assert drawn.scale_ms == 300.0
    assert (drawn.most, drawn.longer) == (90, 1)
    assert drawn.path.count("M") == 3
    assert drawn.median_x < drawn.mean_x < 100.0
    assert charts.step_histogram(factories.make_session()) is None
    even = steps.model_copy(update={"samples_ms": []})
    assert charts.step_histogram(factories.make_session(steps=even)) is None


@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=500))
def test_a_histogram_stays_in_its_drawing(samples: list[float]) -> None:
    steps = records.make_steps(samples_ms=samples, mean_ms=9.0, median_ms=1.0, p95_ms=3.0)

    drawn = charts.step_histogram(factories.make_session(steps=steps))

    assert drawn is not None
    numbers = [float(number) for number in re.findall(r"[-\d.]+", drawn.path)]
    assert all(0.0 <= number <= 100.0 for number in numbers)
