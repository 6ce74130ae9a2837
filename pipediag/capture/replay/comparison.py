"""How two lists of elements, or two element specs, differ, in words."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

_TOLERANCE = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 1e-5, "float64": 1e-8}
"""Relative, and absolute for values about 1: some units in the last place of each type."""


def spec_difference(before: Any, after: Any) -> str | None:
    """What no consumer would bear: another structure, type or rank. Batch sizes may differ."""
    from tensorflow.python.data.util import nest

    try:
        nest.assert_same_structure(before, after)
    except (TypeError, ValueError):
        return f"their structure was {_short(before)} and is {_short(after)}"
    for old, new in zip(nest.flatten(before), nest.flatten(after), strict=True):
        if type(old) is not type(new):
            return f"a component was {_short(old)} and is {_short(new)}"
        if getattr(old, "dtype", None) != getattr(new, "dtype", None):
            return f"a component had the type {old.dtype.name} and has {new.dtype.name}"
        shapes = getattr(old, "shape", None), getattr(new, "shape", None)
        if not _shapes_agree(*shapes):
            return f"a component had the shape {shapes[0]} and has {shapes[1]}"
    return None


def _shapes_agree(old: Any, new: Any) -> bool:
    if old is None or new is None or old.rank is None or new.rank is None:
        return True
    return bool(old.rank == new.rank and old[1:].is_compatible_with(new[1:]))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def difference_of(expected: Sequence[Any], found: Sequence[Any], values: bool) -> str | None:
    """The first difference between elements in the same places, or None.

    Args:
        expected: elements as they were.
        found: elements as they are with the change.
        values: compare shapes and values too, not only structure, types and ranks.
    """
    for number, (old, new) in enumerate(zip(expected, found, strict=False), 1):
        difference = _element_difference(old, new, values)
        if difference is not None:
            return f"in number {number}, {difference}"
    return None


def _element_difference(old: Any, new: Any, values: bool) -> str | None:
    from tensorflow.python.util import nest

    try:
        nest.assert_same_structure(old, new, expand_composites=True)
    except (TypeError, ValueError):
        return "the structure is another one"
    olds = nest.flatten(old, expand_composites=True)
    news = nest.flatten(new, expand_composites=True)
    for component, (a, b) in enumerate(zip_longest(olds, news)):
        difference = _tensor_difference(a, b, values)
        if difference is not None:
            return f"component {component} {difference}" if len(olds) > 1 else difference
    return None


def _tensor_difference(old: Any, new: Any, values: bool) -> str | None:
    if old.dtype != new.dtype:
        return f"had the type {old.dtype.name} and has {new.dtype.name}"
    if old.shape.rank != new.shape.rank:
        return f"had the shape {old.shape} and has {new.shape}"
    if not values or old.dtype.name in ("variant", "resource"):
        return None
    if old.shape != new.shape:
        return f"had the shape {old.shape} and has {new.shape}"
    return _value_difference(old, new)


def _value_difference(old: Any, new: Any) -> str | None:
    # TensorFlow has imported it; an import of ours could find a module of the script's.
    np = sys.modules["numpy"]
    if not (old.dtype.is_floating or old.dtype.is_complex):
        same = np.asarray(old.numpy() == new.numpy())
        return None if same.all() else f"differs in {np.size(same) - same.sum()} values"
    tolerance = _TOLERANCE.get(old.dtype.name, 1e-5)
    wide = np.complex128 if old.dtype.is_complex else np.float64
    a, b = old.numpy().astype(wide), new.numpy().astype(wide)
    if np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
        return None
    return f"differs by up to {np.nanmax(np.abs(a - b)):.3g}"
