from __future__ import annotations

from pathlib import Path

from pipediag.trace.host.threads import (
    captured_function_ids,
    function_time,
    is_pipeline_thread,
    training_line,
)
from tests.trace.builder import TraceBuilder, add_eager_call


def test_the_thread_with_the_markers_trains(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    host.line("python").event("TFE_Py_Execute", 0, 900)
    host.line("Thread-7").event("pipediag_step", 0, 10, step_num=0)
    line = training_line(builder.events(tmp_path))
    assert line is not None
    assert line.name == "Thread-7"


def test_without_markers_the_thread_that_calls_most(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    host.line("Thread-7").event("TFE_Py_Execute", 0, 10)
    host.line("python").event("PjitFunction(step)", 0, 900)
    host.line("tf_data_private_threadpool/1").event("TFE_Py_Execute", 0, 5000)
    line = training_line(builder.events(tmp_path))
    assert line is not None
    assert line.name == "python"


def test_a_profile_without_calls_has_no_training_thread(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("$script.py:1 main", 0, 10)
    assert training_line(builder.events(tmp_path)) is None
    assert training_line(empty_profile().events(tmp_path)) is None


def test_a_thread_that_only_reads_a_variable_trains_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_eager_call(builder.host().line("python"), "ReadVariableOp", 0, 100)
    assert training_line(builder.events(tmp_path)) is None


def empty_profile() -> TraceBuilder:
    builder = TraceBuilder()
    builder.plane("/host:metadata")
    return builder


def test_tf_datas_functions_on_a_shared_thread(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    producer = host.line("tf_data_iterator_resource/1")
    producer.event("InstantiatedCapturedFunction::RunAsync", 0, 1, id=-3)
    producer.event("InstantiatedCapturedFunction::Run", 5, 9, id=-4)
    shared = host.line("tf_Compute/1")
    shared.event("ExecutorState::Process", 0, 10, id=-3)
    shared.event("ExecutorDoneCallback", 10, 15, id=-3)
    shared.event("ExecutorState::Process", 30, 40, id=8)
    events = builder.events(tmp_path)
    functions = captured_function_ids(events)
    assert functions == {-3, -4}
    assert [is_pipeline_thread(line) for line in events.host_lines] == [True, False]
    assert function_time(events.host_lines[1], functions).tolist() == [[0, 15]]
    assert function_time(events.host_lines[1], set()).tolist() == []


def test_what_a_py_function_of_the_pipeline_calls_is_the_pipelines(tmp_path: Path) -> None:
    events = pipeline_that_calls_a_graph().events(tmp_path)
    assert captured_function_ids(events) == {-3, 11, 12}


def test_what_follows_when_a_function_of_the_pipeline_is_done_is_not(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    pool = host.line("tf_data_private_threadpool/1")
    pool.event("InstantiatedCapturedFunction::RunAsync", 0, 10, id=-3)
    pool.event("ExecutorDoneCallback", 10, 40, id=-3)
    pool.event("FunctionRun", 20, 30, id=11)
    host.line("python").event("FunctionRun", 0, 10, id=12)
    assert captured_function_ids(builder.events(tmp_path)) == {-3}


def test_a_thread_on_which_only_the_pipeline_calls_trains_nothing(tmp_path: Path) -> None:
    builder = pipeline_that_calls_a_graph()
    assert training_line(builder.events(tmp_path)) is None


def pipeline_that_calls_a_graph() -> TraceBuilder:
    """A map's py_function calls a tf.function, whose py_function calls another."""
    builder = TraceBuilder()
    host = builder.host()
    host.line("tf_data_iterator_resource/1").event(
        "InstantiatedCapturedFunction::Run", 0, 1000, id=-3
    )
    caller, inner = host.line("tf_Compute/1"), host.line("tf_Compute/2")
    caller.event("ExecutorState::Process", 10, 900, id=-3)
    caller.event("EagerPyFunc:EagerPyFunc", 20, 890)
    caller.event("TFE_Py_ExecuteCancelable", 30, 880)
    caller.event("FunctionRun", 40, 50, id=11)
    inner.event("ExecutorState::Process", 60, 800, id=11)
    inner.event("PyFunc:PyFunc", 70, 790)
    inner.event("TFE_Py_ExecuteCancelable", 80, 780)
    inner.event("FunctionRun", 90, 100, id=12)
    return builder
