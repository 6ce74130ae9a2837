from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipediag.trace.host.graph_loop import GraphLoop, find_graph_loop
from pipediag.trace.steps.splitting import StepSplit
from pipediag.trace.summary import TraceSummary, summarise
from tests.trace.builder import TraceBuilder, add_steps
from tests.trace.graph_loops import (
    INPUT,
    SCAN,
    SCANNED,
    add_passes,
    prefetching_loop,
    scanned_loop,
)
from tests.trace.steps.test_splitting import row, split

RECORDED = Path(__file__).parents[1] / "data" / "graph_loop.xplane.pb.gz"


def found(builder: TraceBuilder, directory: Path) -> GraphLoop:
    loop = find_graph_loop(builder.events(directory))
    assert loop is not None
    return loop


@pytest.fixture
def summary(tmp_path: Path) -> TraceSummary:
    return summarise(scanned_loop().save(tmp_path))


def steps_of(summary: TraceSummary) -> StepSplit:
    assert summary.steps is not None
    return summary.steps


def test_a_step_lasts_from_one_scan_to_the_next(summary: TraceSummary) -> None:
    steps = steps_of(summary).steps
    assert steps.basis == "scan"
    assert steps.windows.tolist() == [[100, 600], [600, 1200]]
    assert summary.window_ns == (100, 1200)


def test_every_nanosecond_of_a_step_inside_a_graph_has_one_class(summary: TraceSummary) -> None:
    # The first step is 500 long, the second 600: 300 of wait, 60 + 30 of operations, the rest.
    result = steps_of(summary)
    assert row(result, 0) == {"device_compute": 90, "input_wait": 300, "dispatch": 110}
    assert row(result, 1) == {"device_compute": 90, "input_wait": 300, "dispatch": 210}
    assert result.get_next_ns.tolist() == [300, 300]


def test_input_that_is_asked_for_while_the_body_computes_is_no_wait(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_passes(host, SCANNED, (100, 600, 1200))
    # An operation of the first body that runs on while the second batch is waited for.
    late = host.line("tf_Compute/1")
    late.event("ExecutorState::Process", 600, 700, id=-1 - 10 * SCANNED)
    late.event("AssignSubVariableOp:AssignSubVariableOp", 620, 700)
    assert row(split(builder, tmp_path), 1)["input_wait"] == 300 - 80


def test_the_cpu_is_busy_with_the_bodys_operations_alone(summary: TraceSummary) -> None:
    [device] = summary.devices
    assert (device.name, device.busy_ns, device.span_ns) == ("CPU", 180, 1100)


def test_the_pipeline_begins_below_the_scan(summary: TraceSummary) -> None:
    iterators = {iterator.path: iterator for iterator in summary.iterators}
    assert list(iterators) == ["Root::MapAndBatch", "Root::MapAndBatch::TensorSlice"]
    batch = iterators["Root::MapAndBatch"]
    assert (batch.names, batch.calls, batch.wait_ns) == (("m", "b"), 2, 600)
    # Produce less its nested calls, and each function call once: 2 + 1 + 8, and 8 to 290 merged.
    assert batch.self_ns == 2 * (2 + 1 + 8 + 4 + 280 - 2)
    assert iterators["Root::MapAndBatch::TensorSlice"].names == ("src",)
    assert summary.get_next_calls == 2


def test_the_loops_own_prefetch_is_not_the_pipelines(tmp_path: Path) -> None:
    builder = prefetching_loop()
    found = {entry.path: entry for entry in summarise(builder.save(tmp_path)).iterators}
    # Its thread works from 20 to 70 of each step, of which 30 to 60 is the iterator below.
    assert found["Root::Prefetch"].self_ns == 2 * 20
    assert found["Root::Prefetch"].wait_ns == 2 * 300
    assert found["Root::Prefetch::Range"].self_ns == 2 * 30


def test_a_seam_between_two_passes_is_no_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_passes(host, SCANNED, (100, 600))
    add_passes(host, SCANNED + 1, (5000, 5500))
    loop = found(builder, tmp_path)
    assert loop.steps.tolist() == [[100, 600], [5000, 5500]]
    assert loop.running.tolist() == [[100, 1060], [5000, 5960]]
    assert len(loop.body_ids) == 4


def test_a_loop_inside_the_loop_is_part_of_its_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_passes(host, SCANNED, (0, 5000, 10000))
    add_passes(host, SCANNED + 1, (1000, 1500, 2000, 2500))
    assert found(builder, tmp_path).steps.tolist() == [[0, 5000], [5000, 10000]]


def test_a_loop_that_may_end_early_has_a_take_while_above_its_scan(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("tf_data_reduce_dataset/1")
    for start in (0, 100, 200):
        line.event("ReduceIterator::Root", start, start + 90, id=1)
        line.event("ReduceIterator::Root::TakeWhile", start + 1, start + 89, id=2)
        line.event("ReduceIterator::Root::TakeWhile::Scan", start + 2, start + 80, id=SCANNED)
        line.event("ReduceIterator::Root::TakeWhile::Scan::Range", start + 3, start + 13, id=INPUT)
        line.event("InstantiatedCapturedFunction::Run", start + 20, start + 79, id=-start - 7)
        line.event(
            "InstantiatedCapturedFunction::RunWithBorrowedArgs", start + 81, start + 88, id=-start
        )
    loop = found(builder, tmp_path)
    assert loop.input.tolist() == [[3, 13], [103, 113], [203, 213]]
    assert loop.body_ids == {-7, -107, -207}
    assert loop.scan_names == {"ReduceIterator::Root::TakeWhile::Scan"}


def test_a_scan_of_the_users_below_a_reduction_is_no_loop(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("tf_data_reduce_dataset/1")
    for start in (0, 100, 200):
        line.event("ReduceIterator::Root::Batch::Scan", start, start + 90, id=SCANNED)
    assert find_graph_loop(builder.events(tmp_path)) is None


def test_two_batches_are_no_loop(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_passes(builder.host(), SCANNED, (100, 600))
    assert find_graph_loop(builder.events(tmp_path)) is None


def test_marked_steps_go_first(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_passes(host, SCANNED, (100, 600, 1200))
    add_steps(host.line("python"), 0, 1000, 2000)
    summary = summarise(builder.save(tmp_path))
    assert steps_of(summary).steps.basis == "markers"
    assert summary.iterators == ()


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


def test_on_an_accelerator_the_body_launches_and_waits(tmp_path: Path) -> None:
    builder = scanned_loop()
    stream = builder.plane("/device:GPU:0").line("Stream #1(Compute)")
    stream.event("gemm", 430, 440)
    # The executor works from 415 to 525; 300 of wait end at 400; the kernel lies in the launch.
    assert row(split(builder, tmp_path), 0) == {
        "device_compute": 10,
        "input_wait": 300,
        "dispatch": 110 - 10,
        "device_wait": 90,
    }


def test_the_names_of_the_loops_scan(tmp_path: Path) -> None:
    assert found(scanned_loop(), tmp_path).scan_names == {SCAN}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> TraceSummary:
    """A real profile of passes of eight steps, whose map `decode` sleeps."""
    path = tmp_path_factory.mktemp("trace") / "graph_loop.xplane.pb"
    path.write_bytes(gzip.decompress(RECORDED.read_bytes()))
    return summarise(path)


def test_a_real_loop_inside_a_graph_waits_for_its_input(recorded: TraceSummary) -> None:
    result = steps_of(recorded)
    assert result.steps.basis == "scan"
    assert (result.ns.sum(axis=1) == result.durations_ns).all()
    assert (result.ns >= 0).all()
    totals = dict(zip(result.classes, result.ns.sum(axis=0).tolist(), strict=True))
    assert {name for name, total in totals.items() if total} == {
        "device_compute",
        "input_wait",
        "dispatch",
    }
    assert max(totals, key=lambda name: totals[name]) == "input_wait"


def test_the_passes_of_a_real_loop_have_seams(recorded: TraceSummary) -> None:
    windows = steps_of(recorded).steps.windows
    assert (windows[1:, 0] >= windows[:-1, 1]).all()
    assert (windows[1:, 0] > windows[:-1, 1]).any()


def test_the_pipeline_of_a_real_loop_inside_a_graph(recorded: TraceSummary) -> None:
    assert {iterator.path: iterator.names for iterator in recorded.iterators} == {
        "Root::Prefetch": ("ahead",),
        "Root::Prefetch::MapAndBatch": ("shape", "batch"),
        "Root::Prefetch::MapAndBatch::Map": ("decode",),
        "Root::Prefetch::MapAndBatch::Map::TensorSlice": ("rows",),
    }
    slowest = max(recorded.iterators, key=lambda iterator: iterator.self_ns)
    assert slowest.names == ("decode",)
