"""For which shapes a function was traced."""

from __future__ import annotations

from itertools import pairwise
from typing import Any


def lengths_differ(function: Any) -> bool:
    """Whether two of its traces are for tensors that differ behind the batch's own dimension.

    False where its traces can't be read.
    """
    try:
        traced = [called_with(one.graph) for one in function._list_all_concrete_functions()]
        return any(_differ(one, other) for one, other in pairwise(traced))
    except Exception:
        return False


def called_with(graph: Any) -> list[Any]:
    """Its inputs that are arguments: what it captures stands behind them, and at the very end what
    it is to be given at each call, as replicas the keys that they find each other by."""
    captured = len(graph.captures) + len(getattr(graph, "deferred_external_captures", ()))
    return list(graph.inputs[: len(graph.inputs) - captured])


def _differ(one: list[Any], other: list[Any]) -> bool:
    alike = len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape.rank == b.shape.rank for a, b in zip(one, other, strict=True)
    )
    return alike and any(
        a.shape.rank and a.shape[1:].as_list() != b.shape[1:].as_list()
        for a, b in zip(one, other, strict=True)
    )
