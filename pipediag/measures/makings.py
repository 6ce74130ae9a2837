"""Time to create and destroy an epoch's iterator: the usual one, and a pause that came once.

To destroy an iterator, TensorFlow waits for the thread that tunes it, and now and then until that
wakes by itself. Own measurement (TensorFlow 2.21, without pipediag): at 7 of 24 epoch boundaries of
one `fit` this took 1.7 to 2.0 s, at the others 5 to 27 ms; with `autotune.enabled = False` it came
at none of 20.
"""

from __future__ import annotations

from collections.abc import Sequence

_SLOW_NS = 100_000_000
"""Own choice: from which on one that was seen alone is slow."""
_NOTICED_NS = 100_000_000
"""Own choice: of slow ones that are quicker than that, nothing is said."""

_PAUSE_FACTOR = 3
"""Own choice: a time that is so many times as long as the next longest one is an outlier. Two such
times are a rate, and none of them is an outlier."""

SLOW_ONES = "whether each epoch lets go of the last one's iterator as slowly as one was seen to"


def pause_among(times_ns: Sequence[int], first_ns: int = 0) -> int | None:
    """Return the index of the one time that is an outlier, or is slow and the only one.

    `first_ns`: what the first iterator took to create, where that is known.
    """
    if not times_ns:
        return None
    *others, longest = sorted(times_ns)
    others = sorted([*others, first_ns] if first_ns else others)
    if longest < _SLOW_NS or (others and longest < _PAUSE_FACTOR * others[-1]):
        return None
    return list(times_ns).index(longest)


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
