"""The places of a functional model's layers, as they were before another model was made of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def places_kept(graph: Any) -> Iterator[None]:
    """A layer that is used again lists its new place; the user's code may look at that list."""
    lists = [
        listed
        for operation in graph._operations
        for listed in (operation._inbound_nodes, operation._outbound_nodes)
    ]
    lengths = [len(listed) for listed in lists]
    try:
        yield
    finally:
        for listed, length in zip(lists, lengths, strict=True):
            del listed[length:]
