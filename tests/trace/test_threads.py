from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.classes import STEP_CLASSES
from pipediag.trace.steps import StepSplit
from pipediag.trace.summary import TraceSummary, summarise
from pipediag.trace.threads import TOP, captured_function_ids, nested_events, training_line
from tests.trace.builder import (
    Event,
    LineBuilder,
    PlaneBuilder,
    TraceBuilder,
    add_events,
    eager_call,
    host_profile,
)
from tests.trace.test_steps import row, split

RUN, PROCESS = "InstantiatedCapturedFunction::Run", "ExecutorState::Process"

# A map's py_function calls a tf.function, whose py_function calls another.
CALLS_A_GRAPH: dict[str, list[Event]] = {
    "tf_data_iterator_resource/1": [(RUN, 0, 1000, {"id": -3})],
    "tf_Compute/1": [
        (PROCESS, 10, 900, {"id": -3}),
        ("EagerPyFunc:EagerPyFunc", 20, 890),
        ("TFE_Py_ExecuteCancelable", 30, 880),
        ("FunctionRun", 40, 50, {"id": 11}),
    ],
    "tf_Compute/2": [
        (PROCESS, 60, 800, {"id": 11}),
        ("PyFunc:PyFunc", 70, 790),
        ("TFE_Py_ExecuteCancelable", 80, 780),
        ("FunctionRun", 90, 100, {"id": 12}),
    ],
}


@pytest.mark.parametrize(
    ("threads", "training"),
    [
        # The thread with the markers, or else the one that calls most.
        (
            {"python": [("TFE_Py_Execute", 0, 900)], "Thread-7": [("pipediag_step", 0, 10)]},
            "Thread-7",
        ),
        (
            {
                "Thread-7": [("TFE_Py_Execute", 0, 10)],
                "python": [("PjitFunction(step)", 0, 900)],
                "tf_data_private_threadpool/1": [("TFE_Py_Execute", 0, 5000)],
            },
            "python",
        ),
        ({"python": [("$script.py:1 main", 0, 10)]}, None),
        ({}, None),
        # One that only reads a variable, or on which only the pipeline calls, trains nothing.
        ({"python": eager_call("ReadVariableOp", 0, 100)}, None),
        (CALLS_A_GRAPH, None),
    ],
)
def test_which_thread_trains(
    threads: dict[str, list[Event]], training: str | None, tmp_path: Path
) -> None:
    line = training_line(host_profile(threads).events(tmp_path))
    assert (line and line.name) == training


def test_functions_that_the_pipelines_functions_call_are_the_pipelines(tmp_path: Path) -> None:
    assert captured_function_ids(host_profile(CALLS_A_GRAPH).events(tmp_path)) == {-3, 11, 12}
    # What follows in the callback of a finished function is not.
    done: dict[str, list[Event]] = {
        "tf_data_private_threadpool/1": [
            (f"{RUN}Async", 0, 10, {"id": -3}),
            ("ExecutorDoneCallback", 10, 40, {"id": -3}),
            ("FunctionRun", 20, 30, {"id": 11}),
        ],
        "python": [("FunctionRun", 0, 10, {"id": 12})],
    }
    assert captured_function_ids(host_profile(done).events(tmp_path)) == {-3}


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12))
def test_around_an_event_is_the_last_one_before_it_that_has_not_ended(
    events: list[tuple[int, int]],
) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start, length in events:
        line.event("a", start, start + length)
    with TemporaryDirectory() as directory:
        read_line = builder.events(Path(directory)).host_lines[0]
        nesting = nested_events(read_line, read_line.used_names)
        for place, (start, _) in enumerate(nesting.spans.tolist()):
            open_ones = [at for at in range(place) if nesting.spans[at, 1] > start]
            assert nesting.parents[place] == max(open_ones, default=TOP)


SCAN = "ReduceIterator::Root::Prefetch::Scan"
REDUCTION, PREFETCH, SCANNED, INPUT, SOURCE = 91, 92, 93, 2, 3
STEP_STARTS = (100, 600, 1200)


def scanned_loop() -> TraceBuilder:
    """Two whole steps and a third call, which begin at 100, 600 and 1200 on one thread.

    A call starting at s waits for MapAndBatch until s + 300 and runs the body from s + 310 to
    s + 450. Of that, operations take s + 320 to s + 380 and s + 390 to s + 420, on a thread where
    the pipeline's function takes s + 10 to s + 290. Meanwhile another thread reads a variable.
    """
    builder = TraceBuilder()
    host = builder.host()
    reader = host.line("python")
    add_events(reader, eager_call("ReadVariableOp", 150, 900))
    add_passes(host, SCANNED, STEP_STARTS)
    return builder


def add_passes(host: PlaneBuilder, iterator: int, starts: tuple[int, ...]) -> None:
    """The steps of one pass, on threads of its own."""
    reduction = host.line("tf_data_reduce_dataset/1")
    loop = host.line("tf_data_prefetch/1")
    producer = host.line("tf_data_map_and_batch/1")
    pool = host.line("tf_data_private_threadpool/1")
    for number, start in enumerate(starts, start=1):
        end = start + 460
        reduction.event("ReduceIterator::Root", start - 5, end + 5, id=REDUCTION, name="p")
        loop.event("PrefetchProduce", start - 2, end + 2, element_id=1)
        loop.event(SCAN, start, end, id=iterator, parent_id=PREFETCH, name="ScanDataset:5")
        loop.event(
            f"{SCAN}::MapAndBatch",
            start,
            start + 300,
            id=INPUT,
            parent_id=iterator,
            name="fused(m,b)",
            parallelism=1,
        )
        body, function = -number - 10 * iterator, -number
        loop.event("InstantiatedCapturedFunction::Run", start + 310, start + 450, id=body)
        add_input(producer, start, function)
        pool.event("ExecutorState::Process", start + 10, start + 290, id=function)
        pool.event("Sum:Sum", start + 20, start + 280)
        pool.event("ExecutorState::Process", start + 315, start + 425, id=body)
        pool.event("matmul:_MklMatMul", start + 320, start + 380)
        pool.event("AssignSubVariableOp:AssignSubVariableOp", start + 390, start + 420)


def add_input(producer: LineBuilder, start: int, function: int) -> None:
    """One element fetched and its function started, in 20 ns."""
    producer.event("MapAndBatchProduce", start, start + 20, element_id=5)
    producer.event(
        f"{SCAN}::MapAndBatch::TensorSlice",
        start + 2,
        start + 7,
        id=SOURCE,
        parent_id=INPUT,
        name="src",
    )
    producer.event("InstantiatedCapturedFunction::RunAsync", start + 8, start + 12, id=function)


RECORDED = Path(__file__).parent / "data" / "graph_loop.xplane.pb.gz"


@pytest.fixture
def summary(tmp_path: Path) -> TraceSummary:
    return summarise(scanned_loop().save(tmp_path))


def steps_of(summary: TraceSummary) -> StepSplit:
    assert summary.steps is not None
    return summary.steps


def test_every_nanosecond_of_a_step_inside_a_graph_has_one_class(summary: TraceSummary) -> None:
    # The first step is 500 long, the second 600: 300 of wait, 60 + 30 of operations, the rest.
    result = steps_of(summary)
    assert row(result, 0) == {"device_compute": 90, "input_wait": 300, "dispatch": 110}
    assert row(result, 1) == {"device_compute": 90, "input_wait": 300, "dispatch": 210}


def test_the_pipeline_begins_below_the_scan(summary: TraceSummary) -> None:
    iterators = {iterator.path: iterator for iterator in summary.iterators}
    assert list(iterators) == ["Root::MapAndBatch", "Root::MapAndBatch::TensorSlice"]
    batch = iterators["Root::MapAndBatch"]
    assert (batch.names, batch.calls) == (("m", "b"), 2)
    # Produce less its nested calls, and each function call once: 2 + 1 + 8, and 8 to 290 merged.
    assert batch.self_ns == 2 * (2 + 1 + 8 + 4 + 280 - 2)
    assert iterators["Root::MapAndBatch::TensorSlice"].names == ("src",)
    assert summary.get_next_calls == 2


def test_a_loop_over_an_iterator_spends_the_rest_on_dispatch(tmp_path: Path) -> None:
    """Its call lasts longer than the profile, so that no thread shows it."""
    builder = TraceBuilder()
    host = builder.host()
    waiter = host.line("tf_data_iterator_get_next_as_optional/1")
    for start in (0, 300, 700):
        waiter.event("IteratorGetNextAsOptionalOp::DoCompute", start, start + 100, id=7)
    host.line("tf_Compute/1").event("while/body/MatMul:MatMul", 120, 300)
    result = split(builder, tmp_path)
    assert result.steps.basis == "get_next"
    assert row(result, 0) == {"device_compute": 180, "input_wait": 100, "dispatch": 20}
    assert row(result, 1) == {"input_wait": 100, "dispatch": 300}


def test_a_real_loop_inside_a_graph_waits_for_its_input() -> None:
    """Passes of eight steps, whose map `decode` sleeps."""
    result = steps_of(summarise(RECORDED))
    assert result.steps.basis == "scan"
    assert (result.ns.sum(axis=1) == result.durations_ns).all()
    assert (result.ns >= 0).all()
    totals = dict(zip(STEP_CLASSES, result.ns.sum(axis=0).tolist(), strict=True))
    assert {name for name, total in totals.items() if total} == {
        "device_compute",
        "input_wait",
        "dispatch",
    }
    assert max(totals, key=lambda name: totals[name]) == "input_wait"
