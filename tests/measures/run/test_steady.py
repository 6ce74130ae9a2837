"""The step in which nothing is built, of windows and calls made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.run.amounts import steady_step
from pipediag.session.recorded_windows import RecordedWindow
from pipediag.session.timeline import Span, Timeline
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS

BEGIN_MS = 1000


def baseline(*durations_ms: int, **overrides: Any) -> RecordedWindow:
    """Steps of a loop whose function is called at the begin of each."""
    begins_ms = [BEGIN_MS + sum(durations_ms[:number]) for number in range(len(durations_ms))]
    block = make_block(
        starts_ns=[one * MS for one in begins_ms],
        durations_ns=[one * MS for one in durations_ms],
        **{"gaps_us": [], **overrides},
    )
    return make_window("baseline", block)


def built_in(*numbers: int, durations_ms: list[int], call_ms: int = 90) -> list[Span]:
    """A first call of these steps, which begins a little before the step does, and its tracing."""
    spans = []
    for number in numbers:
        begin = (BEGIN_MS + sum(durations_ms[:number])) * MS
        spans.append(Span(2 * number, "first_call", begin - 9000, begin + call_ms * MS, "step"))
        spans.append(Span(2 * number + 1, "tracing", begin + MS, begin + (call_ms // 2 + 1) * MS))
    return spans


def steady_ms(spans: list[Span], *windows: RecordedWindow, **of_loop: Any) -> float:
    loop = make_recorded_loop(**of_loop)
    step = steady_step(Timeline(spans), make_recording(loops=[loop], windows=list(windows)), loop)
    assert step is not None
    return step.ns / MS


def test_steps_that_build_their_function_are_no_steady_ones() -> None:
    durations = [100, 10, 100, 12, 100, 100, 14]
    spans = built_in(0, 2, 4, 5, durations_ms=durations)
    assert steady_ms(spans, baseline(*durations)) == pytest.approx(12.0)


def test_where_each_builds_a_repeated_batch_tells_and_the_waits_beside_it() -> None:
    durations = [100, 120, 110, 100]
    spans = built_in(0, 1, 2, 3, durations_ms=durations)
    waits = [1 * MS, 3 * MS, 2 * MS, 2 * MS]
    repeated = make_window("repeat", make_block(20, 8.0, None, start_ms=9000.0))
    found = steady_ms(spans, baseline(*durations, waits_ns=waits), repeated)
    assert found == pytest.approx(8.0 + 2.0)
    # Where the step asks for its batch itself, tf.data's own clock tells of the wait.
    gaps = [97_000, 117_000, 107_000, 97_000]
    assert steady_ms(spans, baseline(*durations, gaps_us=gaps), repeated) == pytest.approx(11.0)


@pytest.mark.parametrize("repeats", [0, 4])
def test_without_one_only_the_tracing_is_taken_off(repeats: int) -> None:
    durations = [100, 100]
    windows = [baseline(*durations)]
    if repeats:
        windows.append(make_window("repeat", make_block(repeats, 8.0, None, start_ms=9000.0)))
    spans = built_in(0, 1, durations_ms=durations)
    assert steady_ms(spans, *windows) == pytest.approx(100.0 - 45.0)


@pytest.mark.parametrize("free", [4, 5])
def test_a_repeated_batch_tells_only_where_it_builds_nothing(free: int) -> None:
    """As a function that is given another Python number each time, or is made anew."""
    durations = [100, 100]
    spans = built_in(0, 1, durations_ms=durations)
    repeated_ms = 9000
    spans += [
        Span(10 + number, "tracing", ns, ns + 45 * MS)
        for number in range(6)
        for ns in [(repeated_ms + 100 * number + 1) * MS]
    ]
    block = make_block(
        starts_ns=[(repeated_ms + 100 * number) * MS for number in range(6 + free)],
        durations_ns=[100 * MS] * 6 + [50 * MS] * free,
        gaps_us=[],
    )
    windows = [baseline(*durations, waits_ns=[2 * MS] * 2), make_window("repeat", block)]
    assert steady_ms(spans, *windows) == pytest.approx(52.0 if free == 5 else 100.0 - 45.0)


def test_a_call_of_several_batches_is_one_step() -> None:
    durations = [100, 40, 40, 40, 40, 40]
    spans = built_in(0, durations_ms=durations)
    assert steady_ms(spans, baseline(*durations), batches_per_call=4) == pytest.approx(40.0)


def test_few_steps_have_no_interval() -> None:
    loop = make_recorded_loop()
    durations = [10, 11, 12, 13, 14]
    for count, known in ((4, False), (5, True)):
        recording = make_recording(loops=[loop], windows=[baseline(*durations[:count])])
        step = steady_step(Timeline(), recording, loop)
        assert step is not None
        assert (step.limits_ns is not None) == known
