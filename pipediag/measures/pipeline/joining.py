"""Which recorded operation each iterator is: by the names in the profile, else by their kinds."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from pipediag.measures.pipeline.iterators import IteratorKey, RanIterator
from pipediag.session.recorded_operations import RecordedOperation

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
    """By operation id, nearest to the consumer first."""
    fused: dict[str, list[str]] = field(default_factory=dict)
    """Operations that run in another one's iterator, by the id of that other one."""
    inserted: list[tuple[RanIterator, str | None]] = field(default_factory=list)
    """Iterators of no recorded operation, with the operation that they read from."""
    of_replicas: list[RanIterator] = field(default_factory=list)
    """What each replica has of its own behind all of these, nearest to the consumer first."""
    operation_of: dict[IteratorKey, str] = field(default_factory=dict)


def join(plan: list[RecordedOperation], ran: list[RanIterator]) -> Joined:
    """Tie iterators (consumer first) to the plan's operations (sources first).

    An iterator without an operation is a part of the source or composite call around it where no
    other operation lies below it; otherwise TensorFlow inserted it.
    """
    joined = Joined(of_replicas=[iterator for iterator in ran if iterator.of_replica])
    ran = [iterator for iterator in ran if not iterator.of_replica]
    waiting = list(reversed(plan))
    for iterator in ran:
        operations = _by_name(waiting, plan, iterator) or _by_kind(waiting, iterator)
        if not operations:
            continue
        carrier = _carrier(operations)
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
    """Where no profile saw the iterator: the next operation towards the source that may be it.

    Where one did, an operation that has a name would have been found by that.
    """
    if iterator.names:
        return []
    if iterator.names is not None:
        waiting = [operation for operation in waiting if not operation.name]
    kind = _VERSION.sub("", iterator.kind)
    as_written = any(may_be(operation.kind, kind) for operation in waiting)
    found = []
    for wanted in (None,) if as_written else _FUSED_KINDS.get(kind, (None,)):
        fitting = (
            operation
            for operation in waiting
            if operation not in found
            and (operation.kind == wanted if wanted else may_be(operation.kind, kind))
        )
        found += [operation for operation in [next(fitting, None)] if operation is not None]
    return found[::-1]


def may_be(operation_kind: str, iterator_kind: str) -> bool:
    """Whether an iterator of that kind, without its version, can run that operation."""
    known = _ITERATORS_OF.get(operation_kind)
    if known is not None:
        return iterator_kind in known
    written = operation_kind.removesuffix("Dataset").replace("_", "").lower()
    return iterator_kind.removeprefix("Parallel").lower() == written


def _carrier(operations: list[RecordedOperation]) -> RecordedOperation:
    """The one whose function costs the time, or else the one nearest to the source."""
    return next((op for op in operations if op.function is not None), operations[0])


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
