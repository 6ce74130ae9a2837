"""A finding's evidence in words and with units, for those who read a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pipediag.facts.pipeline import place_name
from pipediag.reporters.words.quantities import (
    NO_BREAK,
    NOTHING,
    byte_count,
    duration,
    measured,
    microseconds,
    number,
    percent,
    seconds,
    speedup,
)
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

_UNIT = re.compile(r"_(percent|ms|us|s|bytes|gb|ratio|operation)((?:_of|_per)_[a-z_]+)?$")
"""The end of a key: the unit, and what the value is a part of."""
_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "ms": duration,
    "us": microseconds,
    "s": seconds,
    "bytes": byte_count,
    "gb": lambda value: f"{measured(value)}{NO_BREAK}GB",
    "ratio": speedup,
}
_NAMES = {"python": "Python", "cpu": "CPU", "cpus": "CPUs", "gpu": "GPU"}


def evidence(session: Session, key: str, value: Scalar) -> tuple[str, str]:
    """Return words and value with its unit.

    `input_wait_percent_of_step: 76.31` gives `input wait` and `76 % of the step`.
    """
    unit = _UNIT.search(key, 1)
    words = (key[: unit.start()] if unit else key).split("_")
    label = " ".join(_NAMES.get(word, word) for word in words)
    if value is None:
        return label, NOTHING
    if isinstance(value, bool):
        return label, "yes" if value else "no"
    if isinstance(value, str):
        return label, _operation(session, value) if unit and unit[1] == "operation" else value
    if unit is None or unit[1] not in _WRITTEN:
        return label, number(value)
    of = (unit[2] or "").replace("_of_", " of the ").replace("_", " ")
    return label, f"{_WRITTEN[unit[1]](value)}{of}"


def _operation(session: Session, op_id: str) -> str:
    op = session.operation(op_id)
    if op is None:
        return op_id
    return place_name(op)
