"""Rates of tf.data's own model: what each iterator did per batch between two snapshots."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipediag.session.recorded_model import ModelNode, ModelSnapshot

_INSTANCE = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class NodeRate:
    """All nodes of one path together; per step means per batch handed over."""

    path: str
    """As in the profile: `Root::MapAndBatch::Map`."""
    elements: float
    self_ms: float
    """Wall time in the node itself, summed over its parallel calls."""
    bytes_per_element: float | None
    parallelism: int | None
    tunable: bool | None
    buffer_size: int | None
    buffered_elements: float
    """Mean of the two snapshots."""


def node_rates(snapshots: list[ModelSnapshot]) -> list[NodeRate]:
    """Consumer first. From the first and the last snapshot of one iterator, batches between them.

    tf.data forgets the operations of an exhausted branch, so of several iterators the one with the
    most operations counts. Where none was read twice with all of them there (epochs shorter than a
    window) the counters since its start are used, and then the fill of its buffers is counted in.
    """
    pair = _fullest_pair(_beyond_the_fill(snapshots))
    if pair is None:
        return []
    before, after = pair
    steps = after.iterator_steps - (before.iterator_steps if before else 0)
    earlier = {node.id: node for node in before.nodes} if before else {}
    grouped: dict[str, list[ModelNode]] = defaultdict(list)
    for path, node in _walk(after):
        grouped[path].append(node)
    return [_rate(path, nodes, earlier, steps) for path, nodes in grouped.items()]


def _beyond_the_fill(snapshots: list[ModelSnapshot]) -> list[ModelSnapshot]:
    """Without those in which a cache fills, where most show it read: above it nothing runs again.

    A cache that is read is the end of its branch; while it fills, it has inputs.
    """
    reading = [snapshot for snapshot in snapshots if reads_a_cache(snapshot)]
    return reading if 2 * len(reading) >= len(snapshots) else snapshots


def reads_a_cache(snapshot: ModelSnapshot) -> bool:
    """Whether a cache was full in that moment."""
    return any("Cache" in node.name and not node.inputs for node in snapshot.nodes)


def _fullest_pair(
    snapshots: list[ModelSnapshot],
) -> tuple[ModelSnapshot | None, ModelSnapshot] | None:
    by_iterator: dict[int, list[ModelSnapshot]] = defaultdict(list)
    for snapshot in snapshots:
        if snapshot.iterator_steps > 0:
            by_iterator[snapshot.iterator].append(snapshot)
    pairs = [
        (before, after)
        for read in by_iterator.values()
        for before, after in combinations(read, 2)
        if after.iterator_steps > before.iterator_steps
    ]
    single = [snapshot for read in by_iterator.values() for snapshot in read]
    if not single:
        return None
    fullest = max(single, key=lambda snapshot: (*_fullness(snapshot), snapshot.iterator_steps))
    # How many readers an interleave has open changes; which operations there are does not.
    full = [pair for pair in pairs if _fullness(pair[1])[0] == _fullness(fullest)[0]]
    if not full:
        return None, fullest
    return max(full, key=lambda pair: (_fullness(pair[1]), _steps_between(*pair)))


def _fullness(snapshot: ModelSnapshot) -> tuple[int, int]:
    """Different operations, and nodes."""
    return len({path for path, _ in _walk(snapshot)}), len(snapshot.nodes)


def _steps_between(before: ModelSnapshot, after: ModelSnapshot) -> int:
    return after.iterator_steps - before.iterator_steps


def _walk(snapshot: ModelSnapshot) -> Iterator[tuple[str, ModelNode]]:
    """Every node with its path, consumer first."""
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


def _rate(path: str, nodes: list[ModelNode], earlier: dict[int, ModelNode], steps: int) -> NodeRate:
    known = [(node, earlier.get(node.id)) for node in nodes]
    elements = sum(n.num_elements - (e.num_elements if e else 0) for n, e in known)
    spent = sum(n.processing_time_ns - (e.processing_time_ns if e else 0) for n, e in known)
    produced = sum(n.bytes_produced - (e.bytes_produced if e else 0) for n, e in known)
    buffered = [float(n.buffered_elements) for n in nodes]
    if earlier:
        buffered = [(n.buffered_elements + (e or n).buffered_elements) / 2 for n, e in known]
    return NodeRate(
        path=path,
        elements=max(0, elements) / steps,
        self_ms=max(0, spent) / 1e6 / steps,
        bytes_per_element=produced / elements if elements > 0 and produced > 0 else None,
        parallelism=nodes[0].parallelism,
        tunable=_tunable(nodes[0]),
        buffer_size=nodes[0].buffer_size,
        buffered_elements=sum(buffered),
    )


def _tunable(node: ModelNode) -> bool | None:
    known = [
        tunable
        for tunable in (node.parallelism_tunable, node.buffer_size_tunable)
        if tunable is not None
    ]
    return any(known) if known else None
