"""Variables of which a strategy keeps a copy on each of its devices."""

from __future__ import annotations

from typing import Any


def of_all_devices(variable: Any) -> Any:
    """What a strategy made of it, one copy a device; itself otherwise."""
    # Which of the two TensorFlow keeps it at depends on its version.
    at_handle = getattr(variable.handle, "_distributed_container", None)
    container = at_handle or getattr(variable, "_distributed_container", None)
    return variable if container is None else container() or variable
