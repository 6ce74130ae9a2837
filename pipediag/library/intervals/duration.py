"""A length of time as people write it: `90s`, `30m`, `2h`."""

from __future__ import annotations

import math
import re

_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
_LONGEST = 32
"""Characters."""


def seconds_of(every: str | float) -> float:
    """Seconds, of a number of them or of a text such as `30m`.

    Raises:
        ValueError: it is neither, or no time at all.
    """
    seconds = _parsed(every) if isinstance(every, str) else float(every)
    if not 0 < seconds < math.inf:
        raise ValueError(f"every is {every!r}; it is a time, such as '30m', '2h' or 90 (seconds).")
    return seconds


def _parsed(text: str) -> float:
    found = _DURATION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or found[2].lower() not in _SECONDS:
        return math.nan
    return float(found[1]) * _SECONDS[found[2].lower()]
