"""The step in the baseline, under the profiler, and on a repeated batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from pipediag.measures.bootstrap import Measured
from pipediag.measures.input_wait import native_input_wait
from pipediag.measures.steps import (
    compiled_for_lengths,
    measure_differential,
    measure_perturbation,
    measure_steps,
)
from pipediag.session.timeline import Span, Timeline
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS


def test_equal_steps_have_no_spread() -> None:
    recording = make_recording()
    steps = measure_steps(recording, recording.loops[0])
    assert steps is not None
    assert (steps.count, steps.warmup_count) == (40, 10)
    assert (steps.mean_ms, steps.median_ms, steps.p95_ms) == (10.0, 10.0, 10.0)
    assert steps.ci95_ms == (10.0, 10.0)
    assert steps.examples_per_s == 3200.0
    assert (steps.first_step_ms, steps.fill_ms) == (900.0, 50.0)


def test_steps_per_execution_counts_calls_and_times_batches() -> None:
    loop = make_recorded_loop(batches_per_call=10)
    recording = make_recording(loops=[loop], windows=[make_window("baseline", make_block(6, 50.0))])
    steps = measure_steps(recording, loop)
    assert steps is not None
    assert (steps.count, steps.mean_ms, steps.batches_per_call) == (6, 5.0, 10)
    assert steps.examples_per_s == 6400.0


def test_the_ratio_is_of_mean_steps() -> None:
    windows = [make_window("baseline"), make_window("profile", make_block(10, 18.0, None))]
    recording = make_recording(windows=windows)
    found = measure_perturbation(recording, recording.loops[0])
    assert found is not None
    assert (found.baseline_step_ms, found.profiled_step_ms, found.ratio) == (10.0, 18.0, 1.8)


def test_the_share_is_what_the_step_loses_on_a_repeated_batch() -> None:
    recording = make_recording()
    alone = measure_differential(recording, recording.loops[0])
    assert alone is not None
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


def test_it_is_what_a_step_takes_more_than_on_a_length_that_is_compiled() -> None:
    compiled = found()
    assert compiled is not None
    assert compiled.percent == pytest.approx(100.0 * (1.0 - 20 / 1316))
    assert len(compiled.draws) > 100


def test_a_wait_for_the_batch_is_none_of_it() -> None:
    assert found(gap_ms=2.0) is None


def test_steps_that_all_trace_their_function_show_it_without_one_that_does_not() -> None:
    each = found([400] * 10, jit_compile=False, traced_at=range(8))
    assert each is not None
    assert each.percent == pytest.approx(100.0 * (1.0 - 2 / 400), abs=1.0)
    assert found([400] * 10, jit_compile=False, traced_at=range(7)) is None


def test_what_slows_all_steps_is_none_of_it() -> None:
    assert found([20] * 10) is None


@pytest.mark.parametrize(
    "otherwise",
    [
        {"jit_compile": False},
        {"keras": None},
        {"element_spec": "TensorSpec(shape=(None, 12))"},
        {"element_spec": None},
    ],
)
def test_only_xla_compiles_for_each_length(otherwise: dict[str, Any]) -> None:
    assert found(**otherwise) is None
