"""The pipeline as a graph: a lane for each open branch, from the sources to the consumer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from pipediag.facts.pipeline import reads_as_run
from pipediag.session.pipeline import Operation

MOST_LANES = 6
"""Lanes that are told apart: a phone has no room for more. All others share the last one."""

_PITCH = 13.0
"""Between lanes, like all lengths here in sixteenths of a rem; the style sheet indents by it."""
_FIRST = 7.7
_NODE = 21.4
"""From the top of a row to the middle of its node, as the style sheet places it."""


@dataclass(frozen=True)
class Rail:
    """What is drawn beside one operation. Lanes count from 0, at the left."""

    lane: int
    """Where its node is."""
    joins: tuple[int, ...]
    """Lanes from above that lead into the node."""
    through: tuple[int, ...]
    """Lanes that pass by."""
    leaves: bool
    """Whether something below reads from it."""
    dashed: frozenset[int] = frozenset()
    """Lanes from above in which another operation's function makes the elements."""
    inner: bool = False
    """Whether its own lane is such a one from here on."""
    copies: tuple[int, ...] = ()
    """Further lanes in which there is a node of it: one for each replica."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """All lanes in which it has a node."""
        return (self.lane, *self.copies)


def rails(operations: Sequence[Operation], shown: Collection[str]) -> dict[str, Rail]:
    """The rails of the operations that are shown, by their ids; none where the pipeline is a chain.

    Args:
        operations: of the whole pipeline, each behind all that it reads from.
        shown: ids of those that have a row. An edge through others leads on to the next one shown.
    """
    reads = _reads(operations, shown)
    inner = {op.id for op in operations if op.inside_function_of is not None}
    drawn = _with_copies(_laid(reads, inner), {op.id: op.replicas for op in operations})
    branches = any(
        rail.lane or rail.through or rail.copies or len(rail.joins) > 1 for rail in drawn.values()
    )
    return drawn if branches else {}


def lane_count(drawn: Mapping[str, Rail]) -> int:
    """How many lanes stand side by side; 1 for a chain."""
    used = (max(*rail.nodes, *rail.joins, *rail.through, 0) for rail in drawn.values())
    return 1 + max(used, default=0)


def _reads(operations: Sequence[Operation], shown: Collection[str]) -> dict[str, list[str]]:
    """What each operation that is shown reads from, of those that are shown.

    The last operation of a function's pipeline is read by the operation that calls the function.
    """
    sources: dict[str, list[str]] = {}
    parents_of = _with_functions(operations)
    reads: dict[str, list[str]] = {}
    for op in operations:
        above = dict.fromkeys(
            source for parent in parents_of[op.id] for source in sources.get(parent, ())
        )
        if op.id in shown:
            reads[op.id] = list(above)
            sources[op.id] = [op.id]
        else:
            # Of very many the first are enough to see that there are many.
            sources[op.id] = list(above)[: 2 * MOST_LANES]
    return reads


def _with_functions(operations: Sequence[Operation]) -> dict[str, list[str]]:
    parents = reads_as_run(operations)
    read = {parent for above in parents.values() for parent in above}
    for op in operations:
        if op.inside_function_of in parents and op.id not in read:
            parents[op.inside_function_of].append(op.id)
    return parents


def _laid(reads: Mapping[str, Sequence[str]], inner: Collection[str]) -> dict[str, Rail]:
    left = Counter(source for sources in reads.values() for source in sources)
    left.update(list(reads)[-1:])  # the training loop reads the last one
    lanes: list[str | None] = []
    drawn: dict[str, Rail] = {}
    for op, sources in reads.items():
        before = list(lanes)
        joins = [before.index(source) for source in sources if source in before]
        for place in joins:
            source = before[place]
            if source is not None:
                left[source] -= 1
                lanes[place] = source if left[source] else None
        lane = _lane(lanes, [place for place in joins if lanes[place] is None])
        if lane == len(lanes):
            lanes.append(None)
        through = [
            place for place, carried in enumerate(lanes) if carried is not None and place != lane
        ]
        leaves = left[op] > 0
        drawn[op] = Rail(
            lane=_seen(lane),
            joins=_all_seen(joins),
            through=_all_seen(through),
            leaves=leaves,
            dashed=frozenset(_seen(i) for i, carried in enumerate(before) if carried in inner),
            inner=op in inner,
        )
        lanes[lane] = op if leaves else None
        while lanes and lanes[-1] is None:
            lanes.pop()
    return drawn


def _with_copies(drawn: Mapping[str, Rail], replicas: Mapping[str, int]) -> dict[str, Rail]:
    """What each replica has of its own is the end of the pipeline, where no other lane is left."""
    copied: dict[str, Rail] = {}
    above: tuple[int, ...] = ()
    for op, rail in drawn.items():
        lanes = range(rail.lane + 1, min(rail.lane + replicas[op], MOST_LANES))
        copied[op] = replace(rail, copies=tuple(lanes), joins=above or rail.joins)
        above = copied[op].nodes if lanes else ()
    return copied


def _lane(lanes: Sequence[str | None], freed: Sequence[int]) -> int:
    """The leftmost lane that ends here; else the first that is free."""
    if freed:
        return min(freed)
    return next((i for i, carried in enumerate(lanes) if carried is None), len(lanes))


def _seen(lane: int) -> int:
    return min(lane, MOST_LANES - 1)


def _all_seen(lanes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({_seen(lane) for lane in lanes}))


def drawing(rail: Rail, lanes: int) -> Markup:
    """One row's part of the graph, as high as the row: straight lines in percent of it, and what
    bends above the node.

    Args:
        rail: of that row.
        lanes: how many the graph has.
    """
    nodes = rail.nodes
    straight = [_line(lane, "0", "100%", lane in rail.dashed) for lane in rail.through]
    straight += [
        _line(lane, "0", _rem(_NODE), lane in rail.dashed) for lane in nodes if lane in rail.joins
    ]
    if rail.leaves:
        straight += [_line(lane, _rem(_NODE), "100%", rail.inner) for lane in nodes]
    one_each = rail.joins == nodes
    bends = [
        _bend(lane, to, lane in rail.dashed) for lane in rail.joins for to in nodes if not one_each
    ]
    width = 2 * _FIRST + _PITCH * (lanes - 1)
    return Markup(  # numbers of ours alone
        f'<svg class="rails" width="{_rem(width)}" height="100%" aria-hidden="true" '
        f'focusable="false">{"".join(straight)}<svg viewBox="0 0 {width:g} {_NODE:g}" '
        f'width="{_rem(width)}" height="{_rem(_NODE)}">{"".join(bends)}'
        f"</svg>{''.join(map(_dot, nodes))}</svg>"
    )


def _dot(lane: int) -> str:
    return f'<circle class="dot" cx="{_rem(_across(lane))}" cy="{_rem(_NODE)}"/>'


def _line(lane: int, top: str, bottom: str, dashed: bool) -> str:
    across = _rem(_across(lane))
    return f'<line{_dash(dashed)} x1="{across}" x2="{across}" y1="{top}" y2="{bottom}"/>'


def _bend(lane: int, to: int, dashed: bool) -> str:
    if lane == to:
        return ""
    start, end, half = _across(lane), _across(to), _NODE / 2
    return (
        f'<path{_dash(dashed)} d="M{start:g} 0C{start:g} {half:g} {end:g} {half:g} {end:g} '
        f'{_NODE:g}"/>'
    )


def _dash(dashed: bool) -> str:
    return ' class="inner"' if dashed else ""


def _across(lane: int) -> float:
    return _FIRST + _PITCH * lane


def _rem(length: float) -> str:
    return f"{length / 16:.4g}rem"
