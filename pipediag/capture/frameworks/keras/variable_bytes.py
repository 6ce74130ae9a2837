"""Bytes of the variables of a model or an optimizer."""

from __future__ import annotations

import math
from typing import Any


def variable_bytes(owner: Any, name: str) -> int | None:
    """Of all the variables that it lists under this name; None where it can't tell yet."""
    try:
        listed = getattr(owner, name)
        variables = listed() if callable(listed) else listed
        return sum(int(math.prod(one.shape)) * _item_bytes(one.dtype) for one in variables)
    except Exception:  # a model that is not built may raise anything
        return None


def _item_bytes(dtype: Any) -> int:
    """Keras 3 names its types, where TensorFlow has a type of its own for them."""
    size = getattr(dtype, "size", None)
    if size is not None:
        return int(size)
    name = str(dtype)
    if name == "bool" or name.startswith("float8"):
        return 1
    return int("".join(one for one in name if one.isdigit())) // 8
