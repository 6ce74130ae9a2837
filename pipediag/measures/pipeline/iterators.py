"""The iterators that ran for a loop: tf.data's own model, with the names that a profile adds.

The model's numbers go first, as no profiler was running. The profile's stand in where there is no
model (autotune off, distributed iterators), where two branches have the same path, and inside the
functions of flat_map and interleave, as the model forgets an inner iterator when it is exhausted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from pipediag.measures.pipeline.node_rates import NodeRate
from pipediag.tensorflow_names import HOLDS_ELEMENTS
from pipediag.trace.pipeline.iterators import IteratorActivity
from pipediag.trace.summary import TraceSummary

IteratorKey = tuple[str, tuple[str, ...]]

_STRUCTURAL = frozenset({"Root", "Model", "Options", "MaxIntraOpParallelism", "PrivateThreadPool"})
"""They hand elements through; the root bears the name of the last operation as well."""


@dataclass(frozen=True)
class RanIterator:
    """One iterator; per step means per batch handed over. None: not known."""

    path: str
    names: tuple[str, ...] | None
    """User operations in it; empty: the profile says there are none; None: no profile saw it."""
    elements: float | None
    self_ms: float | None
    bytes_per_element: float | None
    parallelism: int | None
    tunable: bool | None
    buffer_size: int | None
    buffered_elements: float | None

    @property
    def kind(self) -> str:
        return self.path.rpartition("::")[2]

    @property
    def key(self) -> IteratorKey:
        return self.path, self.names or ()


def ran_iterators(
    rates: list[NodeRate],
    trace: TraceSummary | None,
    plan_names: set[str],
    other_names: set[str],
) -> list[RanIterator]:
    """Consumer first.

    `plan_names` are the operations' of this pipeline; iterators that bear one of `other_names`
    belong to another pipeline and are left out. Any other name is TensorFlow's own.
    """
    traced = _traced(trace, plan_names, other_names)
    batches = trace.get_next_calls if trace else 0
    found: list[RanIterator] = []
    for rate in rates:
        same_path = traced.pop(rate.path, [])
        inner = _in_a_function(rate.path)
        if len(same_path) > 1 or (same_path and inner):
            found += [_from_trace(activity, batches) for activity in same_path]
        elif inner:
            found.append(_without_costs(_from_model(rate, None)))
        else:
            found.append(_from_model(rate, same_path[0] if same_path else None))
    if not rates:
        found = [_from_trace(activity, batches) for same in traced.values() for activity in same]
    return [iterator for iterator in found if iterator.kind not in _STRUCTURAL]


def _traced(
    trace: TraceSummary | None, plan_names: set[str], other_names: set[str]
) -> dict[str, list[IteratorActivity]]:
    by_path: dict[str, list[IteratorActivity]] = defaultdict(list)
    for activity in trace.iterators if trace else ():
        known = tuple(name for name in activity.names if name in plan_names)
        if known or not other_names.intersection(activity.names):
            by_path[activity.path].append(replace(activity, names=known))
    return by_path


def _in_a_function(path: str) -> bool:
    return any("FlatMap" in part or "Interleave" in part for part in path.split("::")[:-1])


def _from_model(rate: NodeRate, activity: IteratorActivity | None) -> RanIterator:
    kind = rate.path.rpartition("::")[2]
    buffered = rate.buffered_elements if kind.startswith(HOLDS_ELEMENTS) else None
    return RanIterator(
        path=rate.path,
        names=activity.names if activity else None,
        elements=rate.elements,
        self_ms=rate.self_ms,
        bytes_per_element=rate.bytes_per_element,
        parallelism=rate.parallelism,
        tunable=rate.tunable,
        buffer_size=rate.buffer_size or (activity.buffer_size if activity else None),
        buffered_elements=buffered,
    )


def _without_costs(iterator: RanIterator) -> RanIterator:
    """An inner iterator that no profile saw: the model has counted the last of many alone."""
    return replace(iterator, elements=None, self_ms=None, bytes_per_element=None)


def _from_trace(activity: IteratorActivity, batches: int) -> RanIterator:
    return RanIterator(
        path=activity.path,
        names=activity.names,
        elements=activity.calls / batches if batches else None,
        self_ms=activity.self_ns / 1e6 / batches if batches else None,
        bytes_per_element=activity.element_bytes,
        parallelism=activity.parallelism,
        tunable=activity.autotune if activity.parallelism or activity.buffer_size else None,
        buffer_size=activity.buffer_size,
        buffered_elements=activity.buffered_elements,
    )
