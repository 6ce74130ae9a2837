"""Shapes of batches, as tf.data describes them before it knows how long their examples are."""

from __future__ import annotations

import re

_SHAPE = re.compile(r"shape=\(([^)]*)\)")


def lengths_vary(element_spec: str) -> bool:
    """Whether a shape has an unknown dimension behind the batch's own."""
    return any("None" in dimensions[1:] for dimensions in _dimensions(element_spec))


def ranks(element_spec: str) -> list[int]:
    """How many dimensions each component of a batch has, the batch's own among them."""
    return [len(dimensions) for dimensions in _dimensions(element_spec)]


def _dimensions(element_spec: str) -> list[list[str]]:
    found = _SHAPE.findall(element_spec)
    return [[one.strip() for one in shape.split(",") if one.strip()] for shape in found]
