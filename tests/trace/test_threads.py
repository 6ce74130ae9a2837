from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.threads import TOP, captured_function_ids, nested_events, training_line
from tests.trace.builder import Event, TraceBuilder, eager_call, host_profile
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
    events = host_profile(threads).events(tmp_path)
    line = training_line(events, captured_function_ids(events))
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


def test_a_loop_over_an_iterator_spends_the_rest_on_dispatch(tmp_path: Path) -> None:
    """Its call lasts longer than the profile, so that no thread shows it."""
    builder = TraceBuilder()
    host = builder.host()
    waiter = host.line("tf_data_iterator_get_next_as_optional/1")
    for start in (0, 300, 700):
        waiter.event("IteratorGetNextAsOptionalOp::DoCompute", start, start + 100, id=7)
    host.line("tf_Compute/1").event("while/body/MatMul:MatMul", 120, 300)
    result = split(builder, tmp_path)
    assert result.basis == "get_next"
    assert row(result, 0) == {"device_compute": 180, "input_wait": 100, "dispatch": 20}
    assert row(result, 1) == {"input_wait": 100, "dispatch": 300}
