"""Both versions by turns on one machine, until it is decided which is slower.

A round is a run of each. The order of two rounds is base, head, head, base or its mirror image, by
the toss of a coin: what drifts steadily meets both alike, and nothing that comes and goes on the
machine can keep step with them.

From the third round on every round is judged, as strictly as `looks.py` says. That they are the
same ends it at once. A difference ends it where two rounds in a row say so, the second of them
being the fifth or a later one: beside the first three runs of one side, and of that side alone,
another load is by chance in one of eight comparisons if it is beside every other run, and no
interval knows of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, Literal, TypeVar

from pipediag.comparison.looks import FEWEST_TO_DIFFER, share_of_look
from pipediag.comparison.result import Comparison, Outcome
from pipediag.comparison.statistics import FEWEST_RUNS

Side = Literal["base", "head"]
End = Literal["decided", "rounds", "seconds", "undecidable", "interrupted", "failed"]
"""Why no further round was made. `undecidable`: what is judged is missing, and stays so."""

T = TypeVar("T")
Run = Callable[[Side, int, float], T]
"""Runs a version in the round of that number, in at most so many seconds. Raises `Ended`."""
Compare = Callable[[Sequence[T], Sequence[T], float], Comparison]
"""Judges with that part of the error."""


class Ended(Exception):  # noqa: N818 - it need be no error
    """A run gave nothing to compare, and none is to follow."""

    def __init__(self, why: End) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Limits:
    """Where it ends undecided."""

    rounds: int
    seconds: float


@dataclass
class Interleaved(Generic[T]):
    """What was measured, in order, and how it ended."""

    base: list[T] = field(default_factory=list)
    head: list[T] = field(default_factory=list)
    comparison: Comparison | None = None
    """Of all runs; None where one side has none."""
    end: End = "rounds"

    def of(self, side: Side) -> list[T]:
        """What was measured of one version."""
        return self.base if side == "base" else self.head

    @property
    def rounds(self) -> int:
        """Those that are complete."""
        return min(len(self.base), len(self.head))


def interleave(
    run: Run[T],
    compare: Compare[T],
    limits: Limits,
    random: Random,
    clock: Callable[[], float] = time.monotonic,
) -> Interleaved[T]:
    """Runs both by turns until one of them is called slower, neither is, or a limit is reached.

    What a limit leaves is judged as it stands, and so is what `run` ends by `Ended`.
    """
    measured: Interleaved[T] = Interleaved()
    try:
        measured.end = _ended_by(run, compare, limits, random, clock, measured)
    except Ended as ended:
        measured.end = ended.why
    if measured.rounds:
        share = share_of_look(measured.rounds, limits.rounds)
        measured.comparison = compare(measured.base, measured.head, share)
        if measured.end == "rounds" and measured.comparison.outcome != "inconclusive":
            measured.end = "decided"
    return measured


def _ended_by(
    run: Run[T],
    compare: Compare[T],
    limits: Limits,
    random: Random,
    clock: Callable[[], float],
    measured: Interleaved[T],
) -> End:
    over_at = clock() + limits.seconds
    longest = 0.0
    before: Outcome | None = None
    for number, sides in enumerate(_orders(limits.rounds, random), 1):
        begun = clock()
        if begun + longest > over_at:
            return "seconds"
        for side in sides:
            if (left := over_at - clock()) <= 0:
                return "seconds"
            measured.of(side).append(run(side, number, left))
        longest = max(longest, clock() - begun)
        if number >= FEWEST_RUNS:
            found = compare(measured.base, measured.head, share_of_look(number, limits.rounds))
            if end := _settled(found, before, number):
                return end
            before = found.outcome
    return "rounds"


def _orders(rounds: int, random: Random) -> Iterator[tuple[Side, Side]]:
    both: tuple[tuple[Side, Side], ...] = (("base", "head"), ("head", "base"))
    first = 0
    for number in range(rounds):
        first = random.randrange(2) if number % 2 == 0 else 1 - first
        yield both[first]


def _settled(comparison: Comparison, before: Outcome | None, rounds: int) -> End | None:
    """Whether another round would change nothing; `before` is what the last one said."""
    if comparison.outcome == "same":
        return "decided"
    if comparison.outcome != "inconclusive":
        agreed = comparison.outcome == before and rounds >= FEWEST_TO_DIFFER
        return "decided" if agreed else None
    undecided = [one for one in comparison.quantities if one.outcome == "inconclusive"]
    lacking = any(one.missing is not None for one in undecided)
    return "undecidable" if lacking or not undecided else None
