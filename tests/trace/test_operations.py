from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.events import CompiledWork, Program, TraceEvents
from pipediag.trace.files import read
from pipediag.trace.intervals import intersect, normalise, total
from pipediag.trace.operations import ComputeTimes, shares
from pipediag.trace.summary import summarise_events
from tests.trace.builder import (
    CudaProfile,
    LineBuilder,
    PlaneBuilder,
    ProgramBuilder,
    TraceBuilder,
    add_events,
    add_programs,
    graph_call,
    marked_steps,
)

RECORDED = Path(__file__).parent / "data" / "fit.xplane.pb.gz"
COMPILED = RECORDED.with_name("xla.xplane.pb.gz")


def times(events: TraceEvents) -> ComputeTimes:
    found = summarise_events(events, by_operation=True).compute
    assert found is not None
    return found


def executing(line: LineBuilder, *operations: tuple[str, int, int], run: int = 7) -> None:
    """One run of a graph function on a thread."""
    line.event("ExecutorState::Process", operations[0][1], operations[-1][2], id=run)
    for name, start, end in operations:
        line.event(name, start, end)


@pytest.fixture
def builder() -> TraceBuilder:
    return TraceBuilder()


@pytest.fixture
def host(builder: TraceBuilder) -> PlaneBuilder:
    """Two steps of a microsecond."""
    made = builder.host()
    training = made.line("python")
    add_events(training, marked_steps(0, 1000, 2000))
    add_events(training, graph_call(0, 1000))
    add_events(training, graph_call(1000, 2000))
    return made


def test_what_runs_at_once_shares_the_moment(
    builder: TraceBuilder, host: PlaneBuilder, tmp_path: Path
) -> None:
    executing(host.line("tf_Compute/1"), ("f/adam/Mul:Mul", 100, 300), ("f/Sub:Sub", 300, 400))
    executing(host.line("tf_Compute/2"), ("f/dense/MatMul:_MklMatMul", 200, 300))
    found = times(builder.events(tmp_path))
    assert found.by_operation == {
        "f/adam/Mul:Mul": 150.0,
        "f/dense/MatMul:_MklMatMul": 50.0,
        "f/Sub:Sub": 100.0,
    }
    assert (found.total_ns, found.unnamed_ns) == (300, 0.0)


def test_operations_of_the_pipeline_and_outside_of_steps_are_left_out(
    builder: TraceBuilder, host: PlaneBuilder, tmp_path: Path
) -> None:
    host.line("tf_data_iterator_resource/1").event(
        "InstantiatedCapturedFunction::RunAsync", 0, 10, id=-55
    )
    host.line("tf_data_private_threadpool/1").event("Sin:Sin", 0, 500)
    shared = host.line("tf_Compute/1")
    executing(shared, ("Cast:Cast", 10, 390), run=-55)
    executing(shared, ("dense/MatMul:MatMul", 1900, 2100))
    assert times(builder.events(tmp_path)).by_operation == {"dense/MatMul:MatMul": 100.0}


def fused_update() -> bytes:
    """A program of two instructions: a dot, and an update that is fused."""
    program = ProgramBuilder()
    fused = program.computation()
    root = fused.add("Mul.0", "multiply", "adam/Mul:Mul")
    fused.add("Sub.0", "subtract", "adam/AssignSub:AssignSubVariableOp", [root])
    entry = program.computation()
    entry.add("dot.1", "dot", "dense/MatMul:MatMul")
    entry.add("fusion", "fusion", calls=fused)
    return program.serialised()


DOT = CompiledWork(frozenset({"dense/MatMul:MatMul"}), frozenset({"dense/MatMul:MatMul"}))

UPDATE = CompiledWork(
    frozenset({"adam/AssignSub:AssignSubVariableOp"}),
    frozenset({"adam/AssignSub:AssignSubVariableOp", "adam/Mul:Mul"}),
)


def test_what_xla_runs_is_of_the_operations_that_its_program_was_made_of(
    builder: TraceBuilder, host: PlaneBuilder, tmp_path: Path
) -> None:
    for thread in (1, 2):
        line = host.line(f"tf_Compute/{thread}")
        line.event("fusion", 200, 300, hlo_op="fusion", hlo_module="cluster", program_id=844)
        line.event("dot.1", 300, 350, hlo_op="dot.1", hlo_module="cluster", program_id=844)
        line.event("fusion", 400, 430, hlo_op="fusion", hlo_module="cluster", program_id=845)
    add_programs(builder, {844: fused_update()})
    found = times(builder.events(tmp_path))
    assert found.by_instruction == {UPDATE: 100.0, DOT: 50.0}
    assert (found.compiled_ns, found.unnamed_ns, found.total_ns) == (30.0, 0.0, 180)


def test_kernels_of_xla_are_named_in_the_same_way(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 100)
    profile.kernel((10, 30), tf_op="XlaModule:", hlo_op="fusion", program_id=3)
    profile.kernel((30, 40), hlo_op="dot.1", hlo_module="cluster", program_id=3)
    profile.kernel((40, 45), hlo_module="cluster", program_id=3)
    profile.kernel((50, 60), tf_op="f/adam/Mul:Mul")
    profile.programs({3: fused_update()})
    found = times(read(profile.save(tmp_path)))
    assert found.by_instruction == {UPDATE: 20_000.0, DOT: 10_000.0}
    assert (found.by_operation, found.compiled_ns) == ({"f/adam/Mul:Mul": 10_000.0}, 5_000.0)


def test_operations_of_a_real_fit_add_up_to_its_compute() -> None:
    summary = summarise_events(read(RECORDED), by_operation=True)
    named = sum(summary.compute.by_operation.values())
    assert summary.compute.total_ns == summary.steps.column("device_compute").sum()
    assert named == pytest.approx(summary.compute.total_ns, rel=1e-6)
    assert any(name.endswith(":AssignSubVariableOp") for name in summary.compute.by_operation)


def test_what_xla_compiled_of_a_real_step_has_the_names_of_its_graph() -> None:
    found = times(read(COMPILED))
    compiled = sum(found.by_instruction.values())
    assert found.compiled_ns == 0.0
    assert compiled + sum(found.by_operation.values()) == pytest.approx(found.total_ns, rel=1e-6)
    largest = max(found.by_instruction, key=lambda one: found.by_instruction[one])
    assert all(name.startswith("adam/") for name in largest.holds)
    [rows] = [one for one in found.by_instruction if any("GatherV2" in name for name in one.holds)]
    assert {name.rpartition("/")[2] for name in rows.ends_in} == {"Mean:Mean"}


SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=8)


@given(SPANS, SPANS)
def test_shares_add_up_to_the_time_in_which_any_ran(
    spans: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    """However they overlap, and whatever of them lies outside of the windows."""
    ran = np.array([(start, start + length) for start, length in spans], np.int64).reshape(-1, 2)
    inside = normalise([start for start, _ in windows], [sum(one) for one in windows])
    each = shares(ran, inside)
    together = total(intersect(normalise(ran[:, 0], ran[:, 1]), inside))
    assert float(each.sum()) == pytest.approx(together)


def test_operations_on_text_are_known_by_their_type(
    builder: TraceBuilder, host: PlaneBuilder, tmp_path: Path
) -> None:
    executing(
        host.line("tf_Compute/1"),
        ("f/words/Split:StringSplitV2", 100, 300),
        ("f/dense/MatMul:MatMul", 300, 600),
        ("f/words/Find:LookupTableFindV2", 600, 700),
    )
    assert summarise_events(builder.events(tmp_path)).text_ns == 300


Kept = Callable[[ProgramBuilder], Program]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A program, written into a profile and read back."""

    def write(program: ProgramBuilder) -> Program:
        builder = TraceBuilder()
        add_programs(builder, {844: program.serialised()})
        found = builder.events(tmp_path).programs
        assert list(found) == [844]
        return found[844]

    return write


def work(*ends_in: str, holds: tuple[str, ...] = ()) -> CompiledWork:
    return CompiledWork(frozenset(ends_in), frozenset((*ends_in, *holds)))


def test_what_is_fused_has_its_last_operation_and_holds_all_that_compute(kept: Kept) -> None:
    program = ProgramBuilder()
    fused = program.computation()
    table = fused.add("param_0", "parameter")
    epsilon = fused.add("constant.1", "constant", "Relu:Relu")
    root = fused.add("Sqrt_1.0", "sqrt", "adam/Sqrt_1:Sqrt", [table])
    fused.add("Add_1.0", "add", "adam/Add_1:AddV2", [root, epsilon])
    program.computation().add("sqrt_add_fusion", "fusion", "adam/Wrong:Mul", calls=fused)
    assert kept(program)("sqrt_add_fusion") == work("adam/Add_1:AddV2", holds=("adam/Sqrt_1:Sqrt",))


def test_a_copy_that_xla_puts_in_between_is_of_what_makes_and_uses_it(kept: Kept) -> None:
    program = ProgramBuilder()
    entry = program.computation()
    given = entry.add("arg0.1", "parameter", "XLA_Args:")
    copied = entry.add("copy.1", "copy", operands=[given])
    turned = entry.add("bitcast.1", "bitcast", "XLA_Args:", [copied])
    scattered = entry.add("scatter.1", "scatter", "sgd/Scatter:ResourceScatterSub", [turned])
    back = entry.add("copy.2", "copy", operands=[scattered])
    read = entry.add("gather.1", "gather", "words/GatherV2:GatherV2", [back])
    entry.add("tuple.9", "tuple", operands=[read, back])
    found = kept(program)
    assert found("copy.1") == work("sgd/Scatter:ResourceScatterSub")
    assert found("copy.2") == work("sgd/Scatter:ResourceScatterSub", "words/GatherV2:GatherV2")


def test_a_reduction_without_a_name_is_of_what_it_reduces(kept: Kept) -> None:
    program = ProgramBuilder()
    fused = program.computation()
    fused.add("reduce-window.1", "reduce-window", operands=[fused.add("param_0", "parameter")])
    entry = program.computation()
    squares = entry.add("square.1", "multiply", "words/Square:Square")
    partial = entry.add("wrapped_reduce-window", "fusion", operands=[squares], calls=fused)
    entry.add("add.1", "add", "Add:AddV2", [partial])
    assert kept(program)("wrapped_reduce-window") == work("words/Square:Square")


def test_a_damaged_program_tells_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_programs(builder, {1: b"\x0a\xff", 2: b""})
    found = builder.events(tmp_path).programs
    assert [found[number]("dot.3") for number in (1, 2)] == [None, None]
