"""Variables of which a strategy keeps a copy on each of its devices."""

from __future__ import annotations

from typing import Any


def of_all_devices(variable: Any) -> Any:
    """What a strategy made of it, one copy a device; itself otherwise."""
    # Which of the two TensorFlow keeps it at depends on its version.
    at_handle = getattr(variable.handle, "_distributed_container", None)
    container = at_handle or getattr(variable, "_distributed_container", None)
    return variable if container is None else container() or variable


def copies_of(variable: Any) -> int:
    """On how many devices it is."""
    return len(getattr(of_all_devices(variable), "values", None) or (variable,))


def beside(variable: Any, other: Any) -> bool:
    """Whether the other is on the same device, where a strategy has copies of both on several."""
    return copies_of(variable) == 1 or other.device == variable.device
