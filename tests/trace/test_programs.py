from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipediag.trace.events import CompiledWork, Program
from tests.trace.builder import TraceBuilder
from tests.trace.programs import ProgramBuilder, add_programs

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


def test_an_instruction_is_of_the_operation_that_it_was_made_for(kept: Kept) -> None:
    program = ProgramBuilder()
    program.computation().add("dot.3", "dot", "dense/MatMul:MatMul")

    assert kept(program).work("dot.3") == work("dense/MatMul:MatMul")
    assert kept(program).work("dot.4") is None


def test_what_is_fused_has_its_last_operation_and_holds_all_that_compute(kept: Kept) -> None:
    program = ProgramBuilder()
    fused = program.computation()
    table = fused.add("param_0", "parameter")
    epsilon = fused.add("constant.1", "constant", "Relu:Relu")
    root = fused.add("Sqrt_1.0", "sqrt", "adam/Sqrt_1:Sqrt", [table])
    fused.add("Add_1.0", "add", "adam/Add_1:AddV2", [root, epsilon])
    program.computation().add("sqrt_add_fusion", "fusion", "adam/Wrong:Mul", calls=fused)

    assert kept(program).work("sqrt_add_fusion") == work(
        "adam/Add_1:AddV2", holds=("adam/Sqrt_1:Sqrt",)
    )


def test_what_gives_several_results_ends_in_several_operations(kept: Kept) -> None:
    program = ProgramBuilder()
    fused = program.computation()
    first = fused.add("Mul.0", "multiply", "adam/Mul:Mul")
    second = fused.add("Sum.0", "reduce", "loss/Sum:Sum")
    fused.add("tuple.1", "tuple", operands=[first, second])
    program.computation().add("fusion.1", "fusion", calls=fused)

    assert kept(program).work("fusion.1") == work("adam/Mul:Mul", "loss/Sum:Sum")


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

    assert found.work("copy.1") == work("sgd/Scatter:ResourceScatterSub")
    assert found.work("copy.2") == work("sgd/Scatter:ResourceScatterSub", "words/GatherV2:GatherV2")


def test_a_reduction_without_a_name_is_of_what_it_reduces(kept: Kept) -> None:
    program = ProgramBuilder()
    fused = program.computation()
    fused.add("reduce-window.1", "reduce-window", operands=[fused.add("param_0", "parameter")])
    entry = program.computation()
    squares = entry.add("square.1", "multiply", "words/Square:Square")
    partial = entry.add("wrapped_reduce-window", "fusion", operands=[squares], calls=fused)
    entry.add("add.1", "add", "Add:AddV2", [partial])

    assert kept(program).work("wrapped_reduce-window") == work("words/Square:Square")


def test_what_nothing_tells_of_is_not_known(kept: Kept) -> None:
    program = ProgramBuilder()
    entry = program.computation()
    given = entry.add("arg0.1", "parameter", "XLA_Args:")
    copied = entry.add("copy.1", "copy", operands=[given])
    entry.add("tuple.1", "tuple", operands=[copied])

    assert kept(program).work("copy.1") is None


def test_a_damaged_program_tells_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_programs(builder, {1: b"\x0a\xff", 2: b""})
    found = builder.events(tmp_path).programs

    assert [found[number].work("dot.3") for number in (1, 2)] == [None, None]


def test_ids_that_go_round_or_nowhere_end_nothing(kept: Kept) -> None:
    program = ProgramBuilder()
    inner = program.computation()
    inner.add("call.1", "call", calls=inner, operands=[77])
    inner.add("copy.1", "copy", operands=[2, 99])

    assert kept(program).work("call.1") is None
    assert kept(program).work("copy.1") is None
