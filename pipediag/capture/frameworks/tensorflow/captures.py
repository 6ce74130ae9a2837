"""What traced functions were given from outside of them, such as the variables that they write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def captured_by(functions: Iterable[Any]) -> set[int]:
    """Ids of the tensors, and so of the handles of variables, that tf.functions reach as they are
    traced by now; those of functions that they call among them."""
    return {
        id(outer)
        for function in functions
        for concrete in function._list_all_concrete_functions()
        for outer, _ in concrete.graph.captures
    }
