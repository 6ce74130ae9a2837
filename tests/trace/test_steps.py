from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.trace.classes import STEP_CLASSES, classify
from pipediag.trace.files import read
from pipediag.trace.intervals import normalise
from pipediag.trace.steps import (
    StepSplit,
    StepWindows,
    annotated_steps,
    called_windows,
    find_steps,
    split_steps,
)
from tests.trace.builder import Event, TraceBuilder, add_annotations, graph_call, host_profile


def split(builder: TraceBuilder, directory: Path) -> StepSplit:
    events = builder.events(directory)
    activity = classify(events)
    steps = find_steps(events, activity)
    assert steps is not None
    return split_steps(activity.by_class, steps)


def found_in(builder: TraceBuilder, directory: Path) -> StepWindows | None:
    events = builder.events(directory)
    return find_steps(events, classify(events))


def row(result: StepSplit, index: int) -> dict[str, int]:
    """The classes that took any of a step."""
    values = zip(STEP_CLASSES, result.ns[index].tolist(), strict=True)
    return {name: value for name, value in values if value}


def test_a_step_that_paid_for_a_new_functions_first_call_is_left_out(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event("pipediag_step", 0, 100, step_num=4)
    line.event("pipediag_step", 100, 900, step_num=5, start_up=1)
    line.event("pipediag_step", 900, 1000, step_num=5)
    result = split(builder, tmp_path)
    assert result.windows.tolist() == [[0, 100], [900, 1000]]
    assert result.numbers == (4, 5)


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
            python.event("TFE_Py_Execute", start + 40, start + 700)
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
        ((False, False, False, True), "calls", [40, 1040, 2040], (0, 1, 2)),
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
    assert steps.basis == basis
    assert steps.windows[:, 0].tolist() == first_starts
    assert steps.numbers == numbers


SHARED = Path(__file__).parents[3] / "shared" / "traces"


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"there are no real traces at {SHARED}")
@pytest.mark.parametrize(
    ("name", "basis", "count", "median_ms"),
    [
        # An attention block, operation by operation.
        ("jax-mi300x-attention.xplane.pb", None, 0, 0.0),
        # Ten calls of one jitted function; the device's record ends with the fifth.
        ("jax-mi300x-conv-legacy.xplane.pb", "calls", 9, 3.340),
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
    steps = found_in(builder, tmp_path)
    assert (steps.basis, steps.windows.tolist()) == (
        "get_next",
        [[11, 111], [111, 211], [211, 311]],
    )


pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6)


@settings(max_examples=100)
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
    steps = StepWindows(windows, tuple(range(len(windows))), "markers")
    result = split_steps(by_class, steps)
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


@pytest.mark.parametrize(
    ("annotations", "expected", "numbers"),
    [
        # One may be around the whole training.
        ({"train": [(0, 1000)]}, None, ()),
        # The annotation with most steps is taken.
        (
            {
                "epoch": [(0, 500), (500, 1000)],
                "batch": [(10, 90), (110, 190), (510, 590)],
                "test": [(600, 700), (700, 900)],
            },
            [[10, 90], [110, 190], [510, 590]],
            (1, 2, 3),
        ),
        # Of two that nest, the outer one is.
        (
            {"Profiled batch": [(10, 90), (110, 190)], "train": [(0, 95), (100, 195)]},
            [[0, 95], [100, 195]],
            (1, 2),
        ),
        # Four times "inner", but all within one of the same name: that leaves one.
        (
            {
                "inner": [(0, 900), (10, 20), (30, 40), (50, 60)],
                "train": [(0, 400), (0, 400), (400, 900)],
            },
            [[0, 400], [400, 900]],
            (1, 3),
        ),
        # A step that ends after the next one's start is cut there.
        ({"train": [(0, 110), (100, 200)]}, [[0, 100], [100, 200]], (1, 2)),
    ],
)
def test_which_annotation_is_taken(
    annotations: dict[str, list[tuple[int, int]]],
    expected: list[list[int]] | None,
    numbers: tuple[int, ...],
    tmp_path: Path,
) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for name, spans in annotations.items():
        add_annotations(line, name, *spans)
    steps = annotated_steps(builder.events(tmp_path))
    if expected is None:
        assert steps is None
    else:
        assert steps.windows.tolist() == expected
        assert steps.numbers == numbers


def call_windows(builder: TraceBuilder, directory: Path) -> list[list[int]] | None:
    found = called_windows(classify(builder.events(directory)).line)
    return None if found is None else found.tolist()


def functions(*names: str, every: int = 100, lasting: int = 80) -> list[Event]:
    """Calls of jitted functions, each written twice as JAX does."""
    return [
        (f"PjitFunction({name})", number * every, number * every + lasting)
        for number, name in enumerate(names)
        for _ in range(2)
    ]


def named_call(name: str, start: int, end: int, call: str = "notTraced-nonXla") -> list[Event]:
    return [("TFE_Py_Execute", start, end), (name, start, end, {"tf_function_call": call})]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # Two calls are no steps.
        (graph_call(0, 600) + graph_call(1000, 1600), None),
        # The function that takes nearly all of the time is the step: metrics, after every step but
        # one, take 4 * 50 of 4700 ns.
        (
            [
                *functions(*["train_step"] * 5, every=1000, lasting=900),
                *(("PjitFunction(mean)", start, start + 50) for start in (900, 1900, 3900, 4900)),
            ],
            [[0, 1000], [1000, 2000], [2000, 3000], [3000, 4000]],
        ),
        # A call that traces does not make its function the step.
        (
            [
                *named_call("initialise", 0, 50_000, "traced-nonXla"),
                *named_call("train_step", 50_000, 50_500),
                *named_call("train_step", 51_000, 51_500),
                *named_call("train_step", 52_000, 52_500),
            ],
            [[50_000, 51_000], [51_000, 52_000]],
        ),
        # Two functions that alternate take about as much.
        (
            [
                call
                for start in (0, 1000, 2000)
                for call in (
                    *named_call("train_critic", start, start + 400),
                    *named_call("train_maker", start + 400, start + 900),
                )
            ],
            None,
        ),
        # PyTorch's optimizer is called once a step.
        (
            [
                event
                for start in (0, 100, 200)
                for event in (
                    ("aten::mm", start, start + 20),
                    ("Optimizer.step#SGD.step", start + 80, start + 95),
                )
            ],
            [[80, 180], [180, 280]],
        ),
    ],
)
def test_calls_that_begin_steps(
    events: list[Event], expected: list[list[int]] | None, tmp_path: Path
) -> None:
    assert call_windows(host_profile({"python": events}), tmp_path) == expected
