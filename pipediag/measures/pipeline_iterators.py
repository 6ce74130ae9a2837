"""The iterators that ran for a loop, their rates, and which recorded operation each of them is.

The numbers of tf.data's own model go first, as no profiler was running. The profile's, brought to
the pace of steps without a profiler, stand in where there is no model, where two branches have the
same path, and where the model has forgotten the exhausted iterators of a function. An iterator is
tied to an operation by the names in the profile, else by its kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, islice

from pipediag.session.pipeline import IteratorFigures
from pipediag.session.recording import (
    EARLIER,
    NAME_BEGINS,
    ModelNode,
    ModelSnapshot,
    RecordedOperation,
)
from pipediag.tensorflow_names import DEVICE_PREFETCH, HOLDS_ELEMENTS, works_ahead
from pipediag.trace.pipeline import IteratorActivity, IteratorKey, kind_of
from pipediag.trace.summary import TraceSummary

_INSTANCE = re.compile(r"\[\d+\]")


@dataclass(kw_only=True)
class RanIterator(IteratorFigures):
    """One iterator."""

    path: str
    """Path of the iterator as in the profile: `Root::MapAndBatch::Map`."""
    names: tuple[str, ...] | None
    """User operations in it; empty: the profile says there are none; None: no profile saw it."""

    @property
    def kind(self) -> str:
        return kind_of(self.path)

    @property
    def key(self) -> IteratorKey:
        return self.path, self.names or ()


def node_rates(snapshots: list[ModelSnapshot]) -> list[RanIterator]:
    """Return what tf.data's model says of an iterator's nodes by path, consumer first.

    It comes from the first and the last snapshot of one iterator, batches between them. tf.data
    forgets the operations of an exhausted branch, so of several iterators the one with the most
    operations counts. Where none was read twice with all of them there (epochs shorter than a
    window) the counters since its start are used, and the fill of its buffers is counted in.
    Snapshots in which a cache fills are left out where most show it read.
    """
    reading = [snapshot for snapshot in snapshots if reads_a_cache(snapshot)]
    pair = _fullest_pair(reading if 2 * len(reading) >= len(snapshots) else snapshots)
    if pair is None:
        return []
    before, after = pair
    steps = after.iterator_steps - (before.iterator_steps if before else 0)
    earlier = {node.id: node for node in before.nodes} if before else {}
    grouped: dict[str, list[ModelNode]] = defaultdict(list)
    for path, node in _walk(after):
        grouped[path].append(node)
    return [_rate(path, nodes, earlier, steps) for path, nodes in grouped.items()]


def reads_a_cache(snapshot: ModelSnapshot) -> bool:
    """Return True if a cache was full in that moment."""
    return any("Cache" in node.name and not node.inputs for node in snapshot.nodes)


def _fullest_pair(
    snapshots: list[ModelSnapshot],
) -> tuple[ModelSnapshot | None, ModelSnapshot] | None:
    read = [snapshot for snapshot in snapshots if snapshot.iterator_steps > 0]
    if not read:
        return None
    fullest = max(read, key=lambda snapshot: (*_fullness(snapshot), snapshot.iterator_steps))
    # How many readers an interleave has open changes; which operations there are does not.
    full = [
        (before, after)
        for before, after in combinations(read, 2)
        if before.iterator == after.iterator
        and before.iterator_steps < after.iterator_steps
        and _fullness(after)[0] == _fullness(fullest)[0]
    ]
    if not full:
        return None, fullest
    return max(
        full, key=lambda pair: (_fullness(pair[1]), pair[1].iterator_steps - pair[0].iterator_steps)
    )


def _fullness(snapshot: ModelSnapshot) -> tuple[int, int]:
    """Return the number of different operations, and of nodes."""
    return len({path for path, _ in _walk(snapshot)}), len(snapshot.nodes)


def _walk(snapshot: ModelSnapshot) -> Iterator[tuple[str, ModelNode]]:
    """Yield every node with its path, consumer first."""
    by_id = {node.id: node for node in snapshot.nodes}
    pending = [("", snapshot.output_id)]
    seen: set[int] = set()
    while pending:
        prefix, node_id = pending.pop()
        node = by_id.get(node_id)
        if node is None or node_id in seen:
            continue
        seen.add(node_id)
        path = prefix + _INSTANCE.sub("", node.name)
        yield path, node
        pending.extend((path + "::", child) for child in reversed(node.inputs))


def _rate(
    path: str, nodes: list[ModelNode], earlier: dict[int, ModelNode], steps: int
) -> RanIterator:
    known = [(node, earlier.get(node.id)) for node in nodes]
    elements = sum(n.num_elements - (e.num_elements if e else 0) for n, e in known)
    spent = sum(n.processing_time_ns - (e.processing_time_ns if e else 0) for n, e in known)
    produced = sum(n.bytes_produced - (e.bytes_produced if e else 0) for n, e in known)
    buffered = [float(n.buffered_elements) for n in nodes]
    if earlier:
        buffered = [(n.buffered_elements + (e or n).buffered_elements) / 2 for n, e in known]
    first = nodes[0]
    tunable = [t for t in (first.parallelism_tunable, first.buffer_size_tunable) if t is not None]
    return RanIterator(
        path=path,
        names=None,
        elements=max(0, elements) / steps,
        self_ms_per_step=max(0, spent) / 1e6 / steps,
        bytes_per_element=produced / elements if elements > 0 and produced > 0 else None,
        parallelism=first.parallelism,
        autotuned=any(tunable) if tunable else None,
        buffer_size=first.buffer_size,
        buffered_elements=sum(buffered),
    )


_STRUCTURAL = frozenset({"Root", "Model", "Options", "MaxIntraOpParallelism", "PrivateThreadPool"})
"""Iterators that hand elements through; the root bears the name of the last operation as well."""

NONE_FORGOTTEN = 0.01
"""Part by which the elements of inner iterators and of the operation around them may differ."""


def ran_iterators(
    rates: list[RanIterator],
    trace: TraceSummary | None,
    plan_names: set[str],
    other_names: set[str],
    slowed: float = 1.0,
    replicas: int = 1,
) -> list[RanIterator]:
    """Return the iterators of a pipeline, consumer first.

    `rates` are by tf.data's model. Iterators of other pipelines' operations are left out; a name
    that is neither in `plan_names` nor `other_names` is TensorFlow's own. The profiler made steps
    `slowed` times as long, and each of the `replicas` asks for a batch a step.
    """
    traced = _traced(trace, plan_names, other_names)
    batches = trace.get_next_calls / replicas if trace else 0.0
    elements = {rate.path: rate.elements or 0.0 for rate in rates}
    found: list[RanIterator] = []
    for rate in rates:
        same_path = traced.pop(rate.path, [])
        in_a_function = any(map(_has_inner, rate.path.split("::")[:-1]))
        inner = in_a_function and not _none_forgotten(rate.path, elements)
        if len(same_path) > 1 or (same_path and inner):
            found += [_from_trace(activity, batches, slowed) for activity in same_path]
        elif inner:
            # No profile saw it, and the model has counted the last of many alone.
            unseen = _from_model(rate, None)
            found.append(
                replace(unseen, elements=None, self_ms_per_step=None, bytes_per_element=None)
            )
        else:
            found.append(_from_model(rate, same_path[0] if same_path else None))
    if not rates:
        found = [
            _from_trace(activity, batches, slowed) for same in traced.values() for activity in same
        ]
    return [one for one in found if one.kind not in _STRUCTURAL]


def _traced(
    trace: TraceSummary | None, plan_names: set[str], other_names: set[str]
) -> dict[str, list[IteratorActivity]]:
    by_path: dict[str, list[IteratorActivity]] = defaultdict(list)
    iterators = trace.iterators if trace else ()
    of_replicas = {one.path for one in iterators if DEVICE_PREFETCH in one.names}
    for activity in iterators:
        # Each replica has a prefetch of its own, with a generator that asks the host for batches.
        above = activity.path.rpartition("::")[0]
        asks = activity.kind.startswith("Generator") and not activity.names and above in of_replicas
        if asks or DEVICE_PREFETCH in activity.names:
            continue
        known = tuple(name for name in activity.names if name in plan_names)
        # What was read once, by no loop that is recorded, may be recorded no more.
        others = any(name in other_names or name.startswith(NAME_BEGINS) for name in activity.names)
        if known or not others:
            by_path[activity.path].append(replace(activity, names=known))
    return by_path


def _has_inner(part: str) -> bool:
    return "FlatMap" in part or "Interleave" in part


def _none_forgotten(path: str, elements: dict[str, float]) -> bool:
    """Return True if the model has counted every iterator that ran at this path, within functions.

    A flat_map passes on what its inner iterators make, so their elements are as many as its own:
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


def _from_model(rate: RanIterator, activity: IteratorActivity | None) -> RanIterator:
    buffers = rate.kind.startswith(HOLDS_ELEMENTS)
    return replace(
        rate,
        names=activity.names if activity else None,
        buffer_size=rate.buffer_size or (activity.buffer_size if activity else None),
        buffered_elements=rate.buffered_elements if buffers else None,
    )


def _from_trace(activity: IteratorActivity, batches: float, slowed: float) -> RanIterator:
    """Return what the profile says of an iterator; nothing of its time where none was seen.

    A profile may lose the events of a thread that ends while it is taken, as the one that starts
    calls does with its epoch (TensorFlow 2.14): elements without work are no work of 0 ms.
    """
    lost = activity.calls and not activity.self_ns and works_ahead(activity.kind)
    self_ms = activity.self_ns / 1e6 / batches / slowed if batches and not lost else None
    return RanIterator(
        path=activity.path,
        names=activity.names,
        elements=activity.calls / batches if batches else None,
        self_ms_per_step=self_ms,
        parallelism=activity.parallelism,
        autotuned=activity.autotune if activity.parallelism or activity.buffer_size else None,
        buffer_size=activity.buffer_size,
        buffered_elements=activity.buffered_elements,
    )


_FUSED_KINDS = {"MapAndBatch": ("batch", "map"), "ShuffleAndRepeat": ("repeat", "shuffle")}
_ITERATORS_OF = {
    "from_tensor_slices": ("TensorSlice",),
    "from_tensors": ("Tensor",),
    "from_list": ("List",),
    "from_generator": ("Generator", "FlatMap"),
    "list_files": ("TensorSlice", "Shuffle"),
    "cache": ("MemoryCache", "FileCache", "Cache"),
    "repeat": ("ForeverRepeat", "FiniteRepeat", "Repeat"),
    "take": ("FiniteTake", "Take"),
    "skip": ("FiniteSkip", "Skip"),
    "sample_from_datasets": ("DirectedInterleave",),
    "choose_from_datasets": ("DirectedInterleave",),
    "bucket_by_sequence_length": ("GroupByWindow",),
    "sparse_batch": ("DenseToSparseBatch",),
    "CsvDataset": ("CSV",),
    "parse_example_dataset": ("ParseExample",),
}
_VERSION = re.compile(r"V\d+$|Impl$")


@dataclass
class Joined:
    """Iterators by operation, and the rest."""

    of_operation: dict[str, list[RanIterator]] = field(default_factory=lambda: defaultdict(list))
    """Iterators by operation id, nearest to the consumer first."""
    fused: dict[str, list[str]] = field(default_factory=dict)
    """Operations that run in another one's iterator, by the id of that other one."""
    inserted: list[tuple[RanIterator, str | None]] = field(default_factory=list)
    """Iterators of no recorded operation, with the operation that they read from."""
    operation_of: dict[IteratorKey, str] = field(default_factory=dict)


def join(plan: list[RecordedOperation], ran: list[RanIterator]) -> Joined:
    """Tie iterators (consumer first) to the plan's operations (sources first). One without an
    operation is a part of the source or composite call around it, or else TensorFlow's."""
    joined = Joined()
    waiting = list(reversed(plan))
    for iterator in ran:
        operations = _by_name(waiting, plan, iterator) or _by_kind(waiting, iterator)
        if not operations:
            continue
        # The one whose function costs the time, or else the one nearest to the source.
        carrier = next((op for op in operations if op.function is not None), operations[0])
        _give(joined, carrier.id, iterator)
        others = [operation.id for operation in operations if operation is not carrier]
        if others:
            joined.fused[carrier.id] = others
        waiting = [operation for operation in waiting if operation not in operations]
    for iterator in ran:
        if iterator.key not in joined.operation_of:
            _place_unnamed(joined, iterator, ran)
    return joined


def _give(joined: Joined, op_id: str, iterator: RanIterator) -> None:
    joined.of_operation[op_id].append(iterator)
    joined.operation_of[iterator.key] = op_id


def _by_name(
    waiting: list[RecordedOperation], plan: list[RecordedOperation], iterator: RanIterator
) -> list[RecordedOperation]:
    """A user may give two operations one name: those not yet met go first."""
    found = []
    for name in iterator.names or ():
        same = [op for op in (*waiting, *plan) if op.name == name and op not in found]
        found += same[:1]
    return found


def _by_kind(waiting: list[RecordedOperation], iterator: RanIterator) -> list[RecordedOperation]:
    """Return, where no profile saw the iterator, the next operation towards the source that may be
    it. Where one did, an operation that has a name would have been found by that."""
    if iterator.names:
        return []
    if [operation.kind for operation in waiting] == [EARLIER]:
        return waiting
    if iterator.names is not None:
        waiting = [operation for operation in waiting if not operation.name]
    kind = _VERSION.sub("", iterator.kind)
    as_written = any(may_be(operation.kind, kind) for operation in waiting)
    found: list[RecordedOperation] = []
    for wanted in (None,) if as_written else _FUSED_KINDS.get(kind, (None,)):
        fitting = (
            operation
            for operation in waiting
            if operation not in found
            and (operation.kind == wanted if wanted else may_be(operation.kind, kind))
        )
        found += islice(fitting, 1)
    return found[::-1]


def may_be(operation_kind: str, iterator_kind: str) -> bool:
    """Return True if an iterator of that kind, without its version, can run that operation."""
    known = _ITERATORS_OF.get(operation_kind)
    if known is not None:
        return iterator_kind in known
    written = operation_kind.removesuffix("Dataset").replace("_", "").lower()
    return iterator_kind.removeprefix("Parallel").lower() == written


def _place_unnamed(joined: Joined, iterator: RanIterator, ran: list[RanIterator]) -> None:
    above = _nearest(joined, [r for r in ran if iterator.path.startswith(r.path + "::")][::-1])
    below = _nearest(joined, [r for r in ran if r.path.startswith(iterator.path + "::")])
    if above is not None and below in (None, above):
        _give(joined, above, iterator)
    else:
        last_fused = joined.fused.get(below or "", [])[-1:]
        joined.inserted.append((iterator, last_fused[0] if last_fused else below))


def _nearest(joined: Joined, candidates: list[RanIterator]) -> str | None:
    owners = (joined.operation_of.get(candidate.key) for candidate in candidates)
    return next((owner for owner in owners if owner is not None), None)
