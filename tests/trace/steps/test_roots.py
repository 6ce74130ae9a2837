from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.host.classes import classify
from pipediag.trace.steps.roots import root_windows
from tests.trace.builder import TraceBuilder, add_graph_call
from tests.trace.step_profiles import Launcher, add_functions


def windows(builder: TraceBuilder, directory: Path) -> list[list[int]] | None:
    events = builder.events(directory)
    found = root_windows(events, classify(events))
    return None if found is None else found.tolist()


def test_a_step_is_from_one_call_to_the_next(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in (0, 1000, 2500):
        add_graph_call(line, start, start + 600)
    assert windows(builder, tmp_path) == [[0, 1000], [1000, 2500]]


def test_two_calls_are_no_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in (0, 1000):
        add_graph_call(line, start, start + 600)
    assert windows(builder, tmp_path) is None


def test_an_event_that_is_written_twice_is_one_call(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_functions(builder.host().line("python"), ["train_step"] * 3, every=100, lasting=80)
    assert windows(builder, tmp_path) == [[0, 100], [100, 200]]


def test_the_function_that_takes_nearly_all_of_the_time_is_the_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    add_functions(line, ["train_step"] * 5, every=1000, lasting=900)
    # Metrics after every step but one; 4 * 50 of 4700 ns.
    for start in (900, 1900, 3900, 4900):
        line.event("PjitFunction(mean)", start, start + 50)
    assert windows(builder, tmp_path) == [[0, 1000], [1000, 2000], [2000, 3000], [3000, 4000]]


def test_a_call_that_traces_does_not_make_its_function_the_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event("initialise", 0, 50_000, tf_function_call="traced-nonXla")
    for start in (50_000, 51_000, 52_000):
        line.event("train_step", start, start + 500, tf_function_call="notTraced-nonXla")
    assert windows(builder, tmp_path) == [[50_000, 51_000], [51_000, 52_000]]


def test_two_functions_that_alternate_share_the_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in (0, 1000, 2000):
        line.event("train_critic", start, start + 400, tf_function_call="notTraced-nonXla")
        line.event("train_maker", start + 400, start + 900, tf_function_call="notTraced-nonXla")
    # The more costly of the two begins the step.
    assert windows(builder, tmp_path) == [[400, 1400], [1400, 2400]]


def test_operations_one_by_one_are_parts_of_a_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    block = ["matmul", "matmul", "softmax", "matmul"]
    # Matmul takes most of the time, but what lies between two of its calls differs.
    add_functions(builder.host().line("python"), block * 3, every=100, lasting=80)
    assert windows(builder, tmp_path) == [[200, 600], [600, 1000]]


def test_calls_without_order_are_no_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    order = "a b a c c a b b b a c a b c c c".split()
    add_functions(builder.host().line("python"), order, every=100, lasting=80)
    assert windows(builder, tmp_path) is None


def test_what_was_launched_decides_before_the_length_of_the_call(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    # Launched on another thread, when the call of `train_step` has returned.
    launcher = Launcher(builder, host.line("Host Threads/2356"))
    for start in (0, 1000, 2000, 3000):
        line.event("PjitFunction(load_batch)", start, start + 800)
        line.event("PjitFunction(train_step)", start + 800, start + 820)
        launcher.kernel(start + 10, start + 20, start + 40)
        launcher.kernel(start + 830, start + 840, start + 1000)
        launcher.kernel(start + 850, start + 1000, start + 1200)
    assert windows(builder, tmp_path) == [[800, 1800], [1800, 2800], [2800, 3800]]


def runs(launches: list[int]) -> TraceBuilder:
    """Runs of functions without names, each with so many launches, and one launch before them."""
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python3")
    launcher = Launcher(builder, host.line("tf_gpu_private_0/1"))
    launcher.kernel(10, 20, 30)
    for number, count in enumerate(launches, start=1):
        start = 1000 * number
        line.event("FunctionRun", start, start + 50, id=number, _r=1)
        for launch in range(count):
            called = start + 100 + 10 * launch
            launcher.kernel(called, called + 3, called + 9)
    return builder


@pytest.mark.parametrize(
    ("launches", "expected"),
    [
        # 3 lie within a quarter of 4.
        ([4, 4, 3, 4], [[1000, 2000], [2000, 3000], [3000, 4000]]),
        # The profile ends within the last.
        ([4, 4, 1], [[1000, 2000], [2000, 3000]]),
        # Different functions: a start-up, a copy, a step.
        ([8, 1, 6], None),
        ([0, 0, 0], None),
    ],
)
def test_runs_without_a_name_are_steps_if_they_launch_as_much(
    launches: list[int], expected: list[list[int]] | None, tmp_path: Path
) -> None:
    assert windows(runs(launches), tmp_path) == expected


def test_functions_of_the_input_pipeline_are_no_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    pipeline, pool = host.line("tf_data_iterator_resource/1"), host.line("tf_Compute/2")
    for start in (0, 100, 200):
        pipeline.event("FunctionRun", start, start + 10, id=start + 1)
        pool.event("InstantiatedCapturedFunction::Run", start + 20, start + 40, id=start + 7)
        pool.event("FunctionRun", start + 25, start + 35, id=start + 7)
    assert windows(builder, tmp_path) is None


def test_what_python_in_the_input_pipeline_calls_is_no_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    pool = builder.host().line("tf_Compute/2")
    for start in (0, 100, 200):
        pool.event("InstantiatedCapturedFunction::RunAsync", start, start + 5, id=start + 7)
        pool.event("ExecutorState::Process", start + 10, start + 90, id=start + 7)
        add_graph_call(pool, start + 20, start + 80)
        pool.event("FunctionRun", start + 30, start + 40, id=start + 8)
    assert windows(builder, tmp_path) is None


def test_without_a_training_thread_the_most_costly_thread_counts(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    short, long = host.line("tf_Compute/1"), host.line("tf_Compute/2")
    for start in (0, 100, 200):
        short.event("FunctionRun", start, start + 10, id=start + 1)
        long.event("FunctionRun", start + 20, start + 90, id=start + 2)
    assert windows(builder, tmp_path) == [[20, 120], [120, 220]]


def test_the_optimiser_of_pytorch_is_called_once_a_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("thread 1 (python3)")
    for start in (0, 100, 200):
        line.event("aten::mm", start, start + 20)
        line.event("Optimizer.step#SGD.step", start + 80, start + 95)
    assert windows(builder, tmp_path) == [[80, 180], [180, 280]]
