from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.classes import STEP_CLASSES, Activity, classify
from pipediag.trace.intervals import normalise
from pipediag.trace.steps import StepSplit, StepWindows, find_steps, split_steps
from tests.trace.builder import TraceBuilder, add_graph_call, add_steps


def split(builder: TraceBuilder, directory: Path) -> StepSplit:
    activity = classify(builder.events(directory))
    steps = find_steps(activity)
    assert steps is not None
    return split_steps(activity, steps)


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
    assert find_steps(classify(builder.events(tmp_path))) is None


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
