"""The iterators that ran for a loop: tf.data's own model, with the names that a profile adds.

The model's numbers go first, as no profiler was running. The profile's stand in where there is no
model (autotune off, distributed iterators), where two branches have the same path, and inside the
functions of flat_map and interleave where the model has forgotten iterators, as it does with those
that are exhausted. What the profile counts is brought to the pace of steps without a profiler.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from pipediag.measures.pipeline.node_rates import NodeRate
from pipediag.session.recorded_operations import NAME_BEGINS
from pipediag.tensorflow_names import DEVICE_PREFETCH, HOLDS_ELEMENTS
from pipediag.trace.pipeline.iterators import IteratorActivity
from pipediag.trace.summary import TraceSummary

IteratorKey = tuple[str, tuple[str, ...]]

_STRUCTURAL = frozenset({"Root", "Model", "Options", "MaxIntraOpParallelism", "PrivateThreadPool"})
"""They hand elements through; the root bears the name of the last operation as well."""

NONE_FORGOTTEN = 0.01
"""By how much the elements of inner iterators and those of the operation around them may differ,
where the model has seen all of them: elements on their way between the two."""


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
    of_replica: bool = False
    """Whether each replica has one of its own, which reads from the host's last."""

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
    slowed: float = 1.0,
    replicas: int = 1,
) -> list[RanIterator]:
    """Consumer first.

    `plan_names` are the operations' of this pipeline; iterators that bear one of `other_names`
    belong to another pipeline and are left out. Any other name is TensorFlow's own. `slowed` is
    how many times as long the profiler made the steps. Each of `replicas` asks for a batch a step.
    """
    traced = _traced(trace, plan_names, other_names)
    batches = trace.get_next_calls / replicas if trace else 0.0
    elements = {rate.path: rate.elements for rate in rates}
    found: list[RanIterator] = []
    for rate in rates:
        same_path = traced.pop(rate.path, [])
        inner = _in_a_function(rate.path) and not _none_forgotten(rate.path, elements)
        if len(same_path) > 1 or (same_path and inner):
            found += [_from_trace(activity, batches, slowed) for activity in same_path]
        elif inner:
            found.append(_without_costs(_from_model(rate, None)))
        else:
            found.append(_from_model(rate, same_path[0] if same_path else None))
    if not rates:
        found = [
            _from_trace(activity, batches, slowed) for same in traced.values() for activity in same
        ]
    return [iterator for iterator in _handed_on(found) if iterator.kind not in _STRUCTURAL]


def _handed_on(found: list[RanIterator]) -> list[RanIterator]:
    """What each replica's prefetch reads from is the replica's own as well: it asks the host."""
    own = {iterator.path for iterator in found if iterator.of_replica}
    return [
        replace(iterator, of_replica=iterator.of_replica or _asks_the_host(iterator, own))
        for iterator in found
    ]


def _asks_the_host(iterator: RanIterator, own: set[str]) -> bool:
    above, _, kind = iterator.path.rpartition("::")
    return kind.startswith("Generator") and not iterator.names and above in own


def _traced(
    trace: TraceSummary | None, plan_names: set[str], other_names: set[str]
) -> dict[str, list[IteratorActivity]]:
    by_path: dict[str, list[IteratorActivity]] = defaultdict(list)

    def others(name: str) -> bool:
        # What was read once, and by no loop that is told of, may be recorded no more.
        return name in other_names or name.startswith(NAME_BEGINS)

    for activity in trace.iterators if trace else ():
        known = tuple(name for name in activity.names if name in plan_names)
        if known or not any(map(others, activity.names)):
            kept = known or tuple(name for name in activity.names if name == DEVICE_PREFETCH)
            by_path[activity.path].append(replace(activity, names=kept))
    return by_path


def _in_a_function(path: str) -> bool:
    return any(_has_inner(part) for part in path.split("::")[:-1])


def _has_inner(part: str) -> bool:
    return "FlatMap" in part or "Interleave" in part


def _none_forgotten(path: str, elements: dict[str, float]) -> bool:
    """Whether the model has counted every iterator that ran at this path, within functions.

    A flat_map hands on what its inner iterators make, so their elements are as many as its own:
    there are fewer where some are forgotten. A generator's one iterator lasts as long as its data.
    """
    parts = path.split("::")
    for depth in range(1, len(parts)):
        if _has_inner(parts[depth - 1]):
            outer = elements.get("::".join(parts[:depth]), 0.0)
            inner = elements.get("::".join(parts[: depth + 1]), 0.0)
            if outer <= 0 or abs(inner - outer) > NONE_FORGOTTEN * outer:
                return False
    return True


def _from_model(rate: NodeRate, activity: IteratorActivity | None) -> RanIterator:
    kind = rate.path.rpartition("::")[2]
    buffered = rate.buffered_elements if kind.startswith(HOLDS_ELEMENTS) else None
    return RanIterator(
        path=rate.path,
        names=_of_plan(activity) if activity else None,
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


def _from_trace(activity: IteratorActivity, batches: float, slowed: float) -> RanIterator:
    return RanIterator(
        path=activity.path,
        names=_of_plan(activity),
        elements=activity.calls / batches if batches else None,
        self_ms=activity.self_ns / 1e6 / batches / slowed if batches else None,
        bytes_per_element=activity.element_bytes,
        parallelism=activity.parallelism,
        tunable=activity.autotune if activity.parallelism or activity.buffer_size else None,
        buffer_size=activity.buffer_size,
        buffered_elements=activity.buffered_elements,
        of_replica=DEVICE_PREFETCH in activity.names,
    )


def _of_plan(activity: IteratorActivity) -> tuple[str, ...]:
    return tuple(name for name in activity.names if name != DEVICE_PREFETCH)
