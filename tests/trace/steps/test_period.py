from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.steps.splitting import periodic_windows
from tests.trace.builder import LineBuilder, TraceBuilder
from tests.trace.step_profiles import add_kernels


def stream(builder: TraceBuilder, number: int = 13) -> LineBuilder:
    return builder.plane("/device:GPU:0").line(f"Stream #{number}(Kernel)", number)


def windows(builder: TraceBuilder, directory: Path) -> list[list[int]] | None:
    found = periodic_windows(builder.events(directory))
    return None if found is None else found.tolist()


def test_a_step_begins_where_the_stream_had_waited(tmp_path: Path) -> None:
    builder = TraceBuilder()
    # The profile begins within a step. A kernel and its pause take 15 ns, `_` 5 more.
    kernels = "grad update _ embed layer grad update _ embed layer grad update _ embed layer grad"
    add_kernels(stream(builder), kernels.split())
    assert windows(builder, tmp_path) == [[35, 100], [100, 165]]


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        # Without a wait before another, the one that ran first.
        ("embed grad embed grad embed grad", [[0, 30], [30, 60]]),
        # A layer that is repeated within the step begins none.
        (
            "embed layer layer layer grad grad grad _ " * 3,
            [[0, 110], [110, 220]],
        ),
        # One step of six does something more.
        (
            "embed grad log " + "embed grad " * 6,
            [[0, 45], [45, 75], [75, 105], [105, 135], [135, 165], [165, 195]],
        ),
        # Start-up that takes no longer than two steps.
        ("init init embed grad embed grad embed grad", [[30, 60], [60, 90]]),
    ],
)
def test_the_kernel_that_comes_once_a_step(
    kernels: str, expected: list[list[int]], tmp_path: Path
) -> None:
    builder = TraceBuilder()
    add_kernels(stream(builder), kernels.split())
    assert windows(builder, tmp_path) == expected


@pytest.mark.parametrize(
    "kernels",
    [
        "embed grad",
        # Twice may be chance.
        "embed grad embed grad",
        # One step: twelve layers forwards, the same backwards, in other kernels.
        "embed " + "layer " * 12 + "loss " + "gradient " * 12 + "update",
        "a b a c c a b b b a c a b c c c",
    ],
)
def test_no_period(kernels: str, tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_kernels(stream(builder), kernels.split())
    assert windows(builder, tmp_path) is None


def test_layers_of_different_operations_are_no_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = stream(builder)
    for layer in range(4):
        line.event("volta_sgemm", 30 * layer, 30 * layer + 10, tf_op=f"layer_{layer}/MatMul:MatMul")
        line.event("relu", 30 * layer + 15, 30 * layer + 25, tf_op=f"layer_{layer}/Relu:Relu")
    assert windows(builder, tmp_path) is None


def test_the_same_operation_each_time_is_a_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = stream(builder)
    for step in range(3):
        line.event("volta_sgemm", 30 * step, 30 * step + 10, tf_op="dense/MatMul:MatMul")
        line.event("relu", 30 * step + 15, 30 * step + 25, tf_op="dense/Relu:Relu")
    assert windows(builder, tmp_path) == [[0, 30], [30, 60]]


def test_the_stream_that_computes_longest_is_looked_at(tmp_path: Path) -> None:
    builder = TraceBuilder()
    plane = builder.plane("/device:GPU:0")
    add_kernels(plane.line("Stream #1", 1), ["embed", "grad", "_"] * 4)
    add_kernels(plane.line("Stream #2", 2), ["nccl_all_reduce"] * 7)
    # Input arrives when it will.
    add_kernels(plane.line("Stream #3", 3), ["MemcpyH2D"] * 9, lasting=50)
    assert windows(builder, tmp_path) == [[0, 35], [35, 70], [70, 105]]


def test_copies_between_the_kernels_do_not_matter(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = stream(builder)
    add_kernels(line, "embed MemcpyH2D grad embed grad MemcpyD2H embed grad".split())
    assert windows(builder, tmp_path) == [[0, 45], [45, 90]]


def test_copies_alone_are_no_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_kernels(stream(builder), ["MemcpyH2D", "MemcpyD2H"] * 4)
    assert windows(builder, tmp_path) is None


def test_a_profile_without_an_accelerator_has_no_period(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_kernels(builder.host().line("tf_Compute/1"), ["dense/MatMul:MatMul", "loss:Sum"] * 4)
    assert windows(builder, tmp_path) is None
