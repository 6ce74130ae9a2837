"""What repeats in a sequence of events, where nothing says which of them begins a step.

A kind of event may begin a step if the same happens from each of its occurrences to the next: the
same kinds, as often as each time before, in whatever order. Steps fill the sequence; something that
is repeated within one step, as a layer is, leaves much of it before or after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Line

FEWEST_REPEATS = 3
"""Between two events of a kind lies one stretch, which cannot be seen to repeat."""

SAME_SHARE = 0.75
"""How many of the stretches, and how much of their cost, must hold the same: logging, a checkpoint
or another kind of batch may come now and then."""

LONGEST_REST = 2
"""How many usual stretches may lie before the first event, and as many from the last one on: a step
that the profile saw in part, and what was no step yet or any more."""


@dataclass(frozen=True)
class Repeat:
    """A kind of event between whose occurrences the same happens."""

    kind: int
    places: NDArray[np.intp]
    """Where it occurs in the sequence."""
    same_share: float
    """The part of the cost between its first and its last occurrence that is the same each time."""


def repeats(kinds: NDArray[np.int64], costs: NDArray[np.int64]) -> list[Repeat]:
    """Every kind that may begin a step; `costs` say how much each event of the sequence matters."""
    if not len(kinds):
        return []
    places = np.argsort(kinds, kind="stable")
    edges = np.flatnonzero(np.diff(kinds[places])) + 1
    contents, spent = _contents(kinds), np.append(0, np.cumsum(costs))
    found = (
        _repeat(int(kinds[of_kind[0]]), of_kind, contents, spent)
        for of_kind in np.split(places, edges)
        if len(of_kind) >= FEWEST_REPEATS
    )
    return [repeat for repeat in found if repeat is not None]


def name_kinds(line: Line) -> NDArray[np.int64]:
    """The events of a line as kinds: one number for each name, which a plane may hold twice."""
    numbers: dict[str, int] = {}
    by_key = [numbers.setdefault(name, len(numbers)) for name in line.plane.names]
    kinds: NDArray[np.int64] = np.array(by_key, np.int64)[line.name_ids]
    return kinds


def _contents(kinds: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A running sum; what two equal differences span holds the same kinds, equally often."""
    _, ranks = np.unique(kinds, return_inverse=True)
    weights = np.random.default_rng(0).integers(
        0, np.iinfo(np.uint64).max, int(ranks.max()) + 1, np.uint64
    )
    return np.append(np.uint64(0), np.cumsum(weights[ranks], dtype=np.uint64))


def _repeat(
    kind: int,
    places: NDArray[np.intp],
    contents: NDArray[np.uint64],
    spent: NDArray[np.int64],
) -> Repeat | None:
    costs = np.diff(spent[places])
    _, groups = np.unique(np.diff(contents[places]), return_inverse=True)
    numbers, shares = np.bincount(groups), np.bincount(groups, weights=costs)
    usual = int(np.argmax(numbers))
    if not costs.sum() or numbers[usual] < FEWEST_REPEATS - 1:
        return None
    same = float(shares[usual] / costs.sum())
    rest = max(spent[places[0]], spent[-1] - spent[places[-1]])
    too_long = rest > LONGEST_REST * np.median(costs[groups == usual])
    if too_long or min(same, numbers[usual] / len(costs)) < SAME_SHARE:
        return None
    return Repeat(kind, places, same)
