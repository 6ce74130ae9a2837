"""Recorded windows, the step in each of them, and intervals by resampling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from pipediag.estimates import (
    Measured,
    interval,
    resampled_means,
    resampled_medians,
    resampled_rows,
)
from pipediag.measures.input_wait import native_input_wait
from pipediag.measures.steps import (
    Building,
    compiled_for_lengths,
    gap_waits,
    measure_differential,
    measure_steps,
    step_rows,
)
from pipediag.session.recording import RecordedBlock
from pipediag.session.timeline import Span, Timeline
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS


def test_steps_per_execution_counts_calls_and_times_batches() -> None:
    loop = make_recorded_loop(batches_per_call=10)
    recording = make_recording(loops=[loop], windows=[make_window("baseline", make_block(6, 50.0))])
    steps = measure_steps(recording, loop)
    assert (steps.count, steps.mean_ms, steps.batches_per_call) == (6, 5.0, 10)
    assert steps.examples_per_s == 6400.0


def test_the_share_is_what_the_step_loses_on_a_repeated_batch() -> None:
    recording = make_recording()
    alone = measure_differential(recording, recording.loops[0])
    assert (alone.differential.step_ms, alone.differential.steps) == (3.0, 20)
    assert alone.differential.input_share_percent == pytest.approx(70.0)
    assert alone.share.interval == pytest.approx((70.0, 70.0))


LENGTHS = "TensorSpec(shape=(None, None, 12))"
NEW = [2, 2, 600, 2, 2, 2, 2, 2, 700, 2]
"""Milliseconds; two lengths are new."""


def found(
    durations_ms: list[int] = NEW,
    gap_ms: float | None = None,
    *,
    jit_compile: bool = True,
    traced_at: Iterable[int] = (),
    **of_loop: Any,
) -> Measured | None:
    gaps_ms = durations_ms if gap_ms is None else [gap_ms] * len(durations_ms)
    block = make_block(
        len(durations_ms),
        starts_ns=[(4000 + sum(durations_ms[:one])) * MS for one in range(len(durations_ms))],
        durations_ns=[one * MS for one in durations_ms],
        gaps_us=[round(1000 * one) for one in gaps_ms],
    )
    repeated = make_block(50, 2.0, None, start_ms=9000.0)
    spans = [
        Span(number, "first_call", begin, begin + MS, "step")
        for number, begin in enumerate((4000 + at * durations_ms[0]) * MS for at in traced_at)
    ]
    windows = [make_window("baseline", block), make_window("repeat", repeated)]
    loop = make_recorded_loop(**{"element_spec": LENGTHS, **of_loop})
    if loop.keras is not None:
        loop.keras = replace(loop.keras, jit_compile=jit_compile)
    recording = make_recording(windows=windows, loops=[loop])
    native = native_input_wait(recording, loop)
    alone = measure_differential(recording, loop)
    return compiled_for_lengths(Timeline(spans), recording, loop, native, alone)


ALL_TRACE: dict[str, Any] = {"durations_ms": [400] * 10, "jit_compile": False}


@pytest.mark.parametrize(
    ("given", "percent"),
    [
        ({}, 100.0 * (1.0 - 20 / 1316)),
        # A wait for the batch is none of it, nor is what slows all steps.
        ({"gap_ms": 2.0}, None),
        ({"durations_ms": [20] * 10}, None),
        # Steps that all trace their function show it without one that does not.
        ({**ALL_TRACE, "traced_at": range(8)}, 100.0 * (1.0 - 2 / 400)),
        ({**ALL_TRACE, "traced_at": range(7)}, None),
        # Without that, only XLA compiles for each length.
        ({"jit_compile": False}, None),
        ({"keras": None}, None),
        ({"element_spec": "TensorSpec(shape=(None, 12))"}, None),
        ({"element_spec": None}, None),
    ],
)
def test_it_is_what_a_step_takes_more_than_on_a_length_that_is_compiled(
    given: dict[str, Any], percent: float | None
) -> None:
    compiled = found(**given)
    assert (compiled and compiled.percent) == (percent and pytest.approx(percent, abs=0.1))
    assert compiled is None or len(compiled.draws) > 100


def test_rows_are_runs_of_neighbours_that_wrap_at_the_end() -> None:
    rows = np.array(list(islice(resampled_rows(27), 5)))
    assert rows.shape == (5, 27)
    runs = rows.reshape(5, 9, 3)
    assert ((runs[:, :, 1:] - runs[:, :, :-1]) % 27 == 1).all()


def test_an_outlier_moves_the_mean_and_not_the_median() -> None:
    values = [10.0] * 50 + [1000.0]
    assert interval(resampled_medians(values)) == (10.0, 10.0)
    assert interval(resampled_means(values))[1] > 10.0


@pytest.mark.parametrize(
    ("block", "batches", "waits"),
    [
        (make_block(3, 10.0, 3.0), 1, [7.0] * 3),
        # Gaps of a call of several batches are summed.
        (make_block(2, 20.0, None, gaps_us=[3000, 5000, 4000, 4000]), 2, [6.0, 6.0]),
        # Fewer gaps than steps cover the last ones.
        (make_block(3, durations_ns=[10 * MS, 10 * MS, 30 * MS], gaps_us=[1000]), 1, [29.0]),
    ],
)
def test_a_wait_is_the_step_less_its_gap(
    block: RecordedBlock, batches: int, waits: list[float]
) -> None:
    assert gap_waits(block, batches)[0].tolist() == pytest.approx(waits)


def test_a_step_that_asks_for_its_batch_itself_has_its_last_gap_to_come() -> None:
    """Steps of 2, 600, 2 and 700 ms whose gaps are all of them but for 1 ms."""
    block = make_block(
        4,
        durations_ns=[2 * MS, 600 * MS, 2 * MS, 700 * MS],
        gaps_us=[5_000, 1_000, 599_000, 1_000],
        last_gap_unknown=True,
    )
    waits, steps = gap_waits(block, 1)
    assert (waits.tolist(), steps) == (pytest.approx([1.0] * 3), slice(0, 3))
    recording = make_recording(windows=[make_window("baseline", block)])
    rows = step_rows(recording, recording.loops[0])
    assert [row.input_wait_ms for row in rows] == [1.0, 1.0, 1.0, None]


@pytest.mark.parametrize(
    ("start_ns", "step_ns", "builds"),
    [
        (90, 20, True),
        (100, 5, False),  # it ended as this one began
        (80, 20, True),
        (70, 20, False),
        (290, 20, False),  # a callback, and a call that never ended
    ],
)
def test_a_step_builds_where_a_call_that_traced_ends_in_it(
    start_ns: int, step_ns: int, builds: bool
) -> None:
    spans = [
        Span(1, "first_call", 85, 100),
        Span(2, "callback", 290, 300),
        Span(3, "first_call", 295, None),
    ]
    assert Building(Timeline(spans)).is_in(start_ns, step_ns) is builds
