"""Whether traces are for batches of different lengths, told from their inputs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.traced_shapes import lengths_differ


class Shape(tuple[int, ...]):
    @property
    def rank(self) -> int:
        return len(self)

    def __getitem__(self, key: Any) -> Any:
        return Shape(super().__getitem__(key))

    def as_list(self) -> list[int]:
        return list(self)


def traced(*shapes: tuple[int, ...], dtype: str = "int32") -> Any:
    """A trace for tensors of these shapes, which also reads a variable."""
    inputs = [SimpleNamespace(dtype=dtype, shape=Shape(shape)) for shape in shapes]
    held = SimpleNamespace(dtype="resource", shape=Shape(()))
    return SimpleNamespace(graph=SimpleNamespace(inputs=[*inputs, held], captures=[held]))


def function(*traces: Any) -> Any:
    return SimpleNamespace(_list_all_concrete_functions=lambda: list(traces))


@pytest.mark.parametrize(
    ("traces", "differ"),
    [
        ([traced((16, 97), (16,)), traced((16, 104), (16,))], True),
        ([traced((16, 97)), traced((12, 97))], False),
        ([traced((16,)), traced((16,))], False),
        ([traced((16, 97)), traced((16, 97, 3))], False),
        ([traced((16, 97)), traced((16, 104), dtype="float32")], False),
        ([traced((16, 97))], False),
        ([], False),
    ],
)
def test_only_what_lies_behind_the_batch_counts(traces: list[Any], differ: bool) -> None:
    assert lengths_differ(function(*traces)) is differ


def test_traces_that_cannot_be_read_tell_nothing() -> None:
    assert not lengths_differ(object())
