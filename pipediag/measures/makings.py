"""Making the iterators of the epochs to come, and letting go of them, from few that were seen."""

from __future__ import annotations

from collections.abc import Sequence

_SLOW_NS = 100_000_000
"""Own choice: from which on one that was seen alone is slow."""
_NOTICED_NS = 100_000_000
"""Own choice: of slow ones that are quicker than that, nothing is said."""

SLOW_ONES = "whether each epoch lets go of the last one's iterator as slowly as one was seen to"


def usual_ns(seen_ns: Sequence[float]) -> float:
    """Nanoseconds of the next one: of so few, a slow one is not taken for what each takes.

    Making an iterator lets go of the one before it, which takes milliseconds, and now and then
    up to a second. Own measurement: 2 of 21 epochs of a native `fit`.
    """
    if len(seen_ns) == 1 and seen_ns[0] >= _SLOW_NS:
        return 0.0
    return min(seen_ns, default=0.0)


def all_of_few_ns(seen_ns: Sequence[float], count: int) -> float:
    """Nanoseconds of so many, the few that were seen among them."""
    usual = usual_ns(seen_ns)
    left = count - len(seen_ns)
    return sum(seen_ns) + usual * left if left >= 0 else usual * count


def are_doubtful(seen_ns: Sequence[float], usual: float) -> bool:
    """Whether slow ones among them matter, which are not carried on."""
    return sum(seen_ns) - usual * len(seen_ns) > _NOTICED_NS
