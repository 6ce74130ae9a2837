from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.files import read
from pipediag.trace.host.classes import STEP_CLASSES, Activity, classify
from pipediag.trace.intervals import normalise
from pipediag.trace.steps.splitting import StepSplit, StepWindows, find_steps, split_steps
from tests.trace.builder import TraceBuilder, add_graph_call, add_steps


def split(builder: TraceBuilder, directory: Path) -> StepSplit:
    events = builder.events(directory)
    activity = classify(events)
    steps = find_steps(events, activity)
    assert steps is not None
    return split_steps(activity, steps)


def found_in(builder: TraceBuilder, directory: Path) -> StepWindows | None:
    events = builder.events(directory)
    return find_steps(events, classify(events))


def row(result: StepSplit, index: int) -> dict[str, int]:
    """The classes that took any of a step."""
    values = zip(result.classes, result.ns[index].tolist(), strict=True)
    return {name: value for name, value in values if value}


def fit_profile() -> TraceBuilder:
    """Two steps of a Keras fit: a graph call, GetNext on its own thread, then callbacks."""
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    add_steps(line, 0, 1000, 3000)
    line.event("Profiled batch", 0, 900, step_num=12)
    executor = host.line("tf_Compute/1")
    waiter = host.line("tf_data_iterator_get_next/1")
    for start, wait in ((0, 300), (1000, 1300)):
        add_graph_call(line, start + 50, start + wait + 450)
        waiter.event("IteratorGetNextOp::DoCompute", start + 100, start + 100 + wait, id=7)
        executor.event("adam/Add/ReadVariableOp:ReadVariableOp", start + 80, start + 120)
        executor.event("dense/MatMul:MatMul", start + wait + 150, start + wait + 400)
    return builder


def test_every_nanosecond_of_a_step_has_one_class(tmp_path: Path) -> None:
    result = split(fit_profile(), tmp_path)
    # Step 0: 0-50 Python, call 50-750, of it operations 80-120 and 450-700, GetNext 100-400.
    assert row(result, 0) == {
        "device_compute": 40 + 250,
        "input_wait": 280,
        "dispatch": 30 + 50 + 50,
        "python": 50 + 250,
    }
    # Step 1 is 2000 long: call 1050-2750, GetNext 1100-2400, operations 1080-1120 and 2450-2700.
    assert row(result, 1) == {
        "device_compute": 40 + 250,
        "input_wait": 1280,
        "dispatch": 30 + 50 + 50,
        "python": 50 + 250,
    }
    assert result.get_next_ns.tolist() == [300, 1300]
    assert result.durations_ns.tolist() == [1000, 2000]
    assert result.steps.numbers == (0, 1)
    assert result.steps.basis == "markers"


def test_a_column_by_name(tmp_path: Path) -> None:
    assert split(fit_profile(), tmp_path).column("input_wait").tolist() == [280, 1280]


def test_markers_that_overlap_are_cut_at_the_next_start(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event("pipediag_step", 0, 110, step_num=4).event("pipediag_step", 100, 200, step_num=5)
    result = split(builder, tmp_path)
    assert result.steps.windows.tolist() == [[0, 100], [100, 200]]
    assert result.steps.numbers == (4, 5)


def test_a_step_that_paid_for_a_new_functions_first_call_is_left_out(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event("pipediag_step", 0, 100, step_num=4)
    line.event("pipediag_step", 100, 900, step_num=5, start_up=1)
    line.event("pipediag_step", 900, 1000, step_num=5)
    result = split(builder, tmp_path)
    assert result.steps.windows.tolist() == [[0, 100], [900, 1000]]
    assert result.steps.numbers == (4, 5)


def test_a_loop_in_a_graph_is_split_where_batches_are_handed_over(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 1000)
    waiter = host.line("tf_data_iterator_get_next/1")
    for start in (0, 300, 700):
        waiter.event("IteratorGetNextOp::DoCompute", start, start + 100, id=7)
    host.line("tf_Compute/1").event("while/body/MatMul:MatMul", 120, 300)
    result = split(builder, tmp_path)
    assert result.steps.basis == "get_next"
    assert result.steps.windows.tolist() == [[100, 400], [400, 800]]
    assert row(result, 0) == {"device_compute": 180, "input_wait": 100, "dispatch": 20}
    assert row(result, 1) == {"input_wait": 100, "dispatch": 300}


def test_two_batches_are_no_loop(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("tf_data_iterator_get_next/1")
    line.event("IteratorGetNextOp::DoCompute", 0, 10)
    line.event("IteratorGetNextOp::DoCompute", 20, 30)
    assert found_in(builder, tmp_path) is None


def every_sign(markers: bool, annotations: bool, batches: bool, calls: bool) -> TraceBuilder:
    """Three steps of 1000 ns, shown by the kernels on a device and by what else is asked for."""
    builder = TraceBuilder()
    host = builder.host()
    python = host.line("python")
    launcher, waiter = host.line("tf_gpu_private_0/1"), host.line("tf_data_iterator_get_next/1")
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    for number in range(4):
        start = 1000 * number
        if markers:
            python.event("pipediag_step", start, start + 1000, step_num=number)
        if annotations:
            python.event("train", start + 10, start + 800, step_num=number + 40, _r=1)
        if batches:
            waiter.event("IteratorGetNextOp::DoCompute", start + 20, start + 30, id=7)
        if calls:
            python.event("train_step", start + 40, start + 700, tf_function_call="notTraced")
        launcher.event("cuLaunchKernel", start + 50, start + 60, correlation_id=number + 1)
        stream.event("volta_sgemm", start + 100, start + 400, correlation_id=number + 1)
    return builder


@pytest.mark.parametrize(
    ("signs", "basis", "first_starts", "numbers"),
    [
        ((True, True, True, True), "markers", [0, 1000, 2000, 3000], (0, 1, 2, 3)),
        ((False, True, True, True), "annotations", [10, 1010, 2010, 3010], (40, 41, 42, 43)),
        ((False, False, True, True), "get_next", [30, 1030, 2030], (0, 1, 2)),
        ((False, False, False, True), "roots", [40, 1040, 2040], (0, 1, 2)),
        ((False, False, False, False), "period", [100, 1100, 2100], (0, 1, 2)),
    ],
)
def test_the_best_sign_of_a_step_decides(
    signs: tuple[bool, bool, bool, bool],
    basis: str,
    first_starts: list[int],
    numbers: tuple[int, ...],
    tmp_path: Path,
) -> None:
    steps = found_in(every_sign(*signs), tmp_path)
    assert steps is not None
    assert steps.basis == basis
    assert steps.windows[:, 0].tolist() == first_starts
    assert steps.numbers == numbers


def test_without_any_sign_there_are_no_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("$train.py:3 main", 0, 1000)
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    stream.event("volta_sgemm", 0, 10).event("add", 20, 30).event("relu", 40, 50)
    assert found_in(builder, tmp_path) is None


SHARED = Path(__file__).parents[4] / "shared" / "traces"


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"there are no real traces at {SHARED}")
@pytest.mark.parametrize(
    ("name", "basis", "count", "median_ms"),
    [
        # Three calls of one attention block, operation by operation.
        ("jax-mi300x-attention.xplane.pb", "roots", 2, 14.583),
        # Ten calls of one jitted function; the device's record ends with the fifth.
        ("jax-mi300x-conv-legacy.xplane.pb", "roots", 9, 3.340),
        # Start-up and a single step.
        ("tf-v100x8-2020.xplane.pb", None, 0, 0.0),
        ("torch-kineto-control.json.gz", "annotations", 6, 76.834),
        ("torch-kineto-ns.json.gz", "annotations", 5, 95.551),
    ],
)
def test_real_traces(name: str, basis: str | None, count: int, median_ms: float) -> None:
    events = read(SHARED / name)
    steps = find_steps(events, classify(events))
    if basis is None:
        assert steps is None
        return
    assert steps is not None
    assert (steps.basis, len(steps.windows)) == (basis, count)
    lengths = steps.windows[:, 1] - steps.windows[:, 0]
    assert np.median(lengths) / 1e6 == pytest.approx(median_ms, abs=0.001)
    assert (lengths > 0).all()
    assert (steps.windows[1:, 0] >= steps.windows[:-1, 1]).all()


def test_the_replicas_parts_of_a_batch_are_one_hand_over(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    for replica in (0, 1):
        line = host.line(f"tf_Compute/{replica}")
        for step in range(4):
            start = 100 * step + 6 * replica
            line.event("IteratorGetNextOp::DoCompute", start, start + 5, id=step + 1, iter_num=0)
    events = builder.events(tmp_path)
    steps = find_steps(events, classify(events))
    assert steps is not None
    assert (steps.basis, steps.windows.tolist()) == (
        "get_next",
        [[11, 111], [111, 211], [211, 311]],
    )


def test_what_the_training_thread_did_not_record_is_unattributed() -> None:
    activity = Activity(
        line=None,
        by_class={name: normalise([], []) for name in STEP_CLASSES[:-1]},
        get_next=normalise([], []),
    )
    steps = StepWindows(np.array([[5, 25]]), (0,), "get_next")
    assert row(split_steps(activity, steps), 0) == {"unattributed": 20}


pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6)


@given(st.lists(pairs, min_size=8, max_size=8), st.lists(st.integers(0, 60), min_size=2))
def test_rows_add_up_and_priority_decides(
    sets: list[list[tuple[int, int]]], edges: list[int]
) -> None:
    by_class = {
        name: normalise([a for a, _ in rows], [b for _, b in rows])
        for name, rows in zip(STEP_CLASSES[:-1], sets, strict=True)
    }
    edges = sorted(edges)
    windows = np.array(list(pairwise(edges)), np.int64)
    activity = Activity(line=None, by_class=by_class, get_next=by_class["input_wait"])
    steps = StepWindows(windows, tuple(range(len(windows))), "markers")
    result = split_steps(activity, steps)
    for index, (start, end) in enumerate(windows.tolist()):
        winners = [
            next(
                (
                    name
                    for name, rows in zip(STEP_CLASSES[:-1], sets, strict=True)
                    if any(a <= tick < b for a, b in rows)
                ),
                "unattributed",
            )
            for tick in range(start, end)
        ]
        expected = [winners.count(name) for name in STEP_CLASSES]
        assert result.ns[index].tolist() == expected
