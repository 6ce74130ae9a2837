from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.keras.facts import variable_bytes


def owner(*variables: tuple[tuple[int, ...], Any]) -> Any:
    listed = [SimpleNamespace(shape=shape, dtype=dtype) for shape, dtype in variables]
    return SimpleNamespace(variables=listed, called=lambda: listed)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float32", 4),
        ("bfloat16", 2),
        ("int64", 8),
        ("float8_e4m3fn", 1),
        ("uint8", 1),
        ("bool", 1),
    ],
)
def test_types_as_keras_names_them(dtype: str, size: int) -> None:
    assert variable_bytes(owner(((10, 3), dtype)), "variables") == 30 * size


def test_types_that_know_their_size_and_scalars() -> None:
    found = owner(((), "int64"), ((2, 2), SimpleNamespace(size=4)))

    assert variable_bytes(found, "variables") == variable_bytes(found, "called") == 8 + 16


def test_what_is_not_built_or_not_there_is_unknown() -> None:
    assert variable_bytes(owner(((None, 3), "float32")), "variables") is None  # type: ignore[arg-type]
    assert variable_bytes(None, "variables") is None
    assert variable_bytes(owner(), "variables") == 0
