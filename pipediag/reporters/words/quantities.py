"""Numbers as people read them: three significant digits, units after a no-break space."""

from __future__ import annotations

import re

from pipediag.facts.names import memory_size
from pipediag.session.record import Interval

NO_BREAK = "\N{NO-BREAK SPACE}"
NOTHING = "\N{EN DASH}"

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:ms|s|min|h|[KMGT]iB|bytes|steps)\b)")


def number(value: float | None) -> str:
    """A count or a plain number: whole where it is whole, else three significant digits."""
    if value is not None and value == int(value):
        return f"{value:,.0f}"
    return measured(value)


def counted(count: int, thing: str) -> str:
    """`1 kernel`, `1,584 kernels`."""
    return f"{number(count)} {thing}{'' if count == 1 else 's'}"


def measured(value: float | None) -> str:
    """Three significant digits, thousands grouped; an en dash for nothing."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.1:
        return f"{value:.2f}"
    return f"{value:.2g}"


def milliseconds(value: float | None) -> str:
    """A duration given in milliseconds; seconds from ten seconds on."""
    if value is None:
        return NOTHING
    if value >= 10_000:
        return seconds(value / 1000)
    return f"{measured(value)}{NO_BREAK}ms"


def duration(ms: float | None) -> str:
    """A duration given in milliseconds; microseconds under one millisecond."""
    return microseconds(ms * 1000) if ms is not None and 0 < ms < 1 else milliseconds(ms)


def microseconds(value: float | None) -> str:
    """A duration given in microseconds; milliseconds from a thousand on."""
    if value is not None and value >= 1000:
        return milliseconds(value / 1000)
    return NOTHING if value is None else f"{measured(value)}{NO_BREAK}µs"


def seconds(value: float | None) -> str:
    """A duration given in seconds; minutes from two minutes on, hours from two hours on."""
    if value is None:
        return NOTHING
    if value >= 7200:
        return f"{measured(value / 3600)}{NO_BREAK}h"
    if value >= 120:
        return f"{measured(value / 60)}{NO_BREAK}min"
    return f"{measured(value)}{NO_BREAK}s"


def percent(value: float | None) -> str:
    """`91 %`, and one decimal under ten: `3.4 %`."""
    return NOTHING if value is None else f"{_percent(value)}{NO_BREAK}%"


def percent_interval(interval: Interval | None) -> str:
    """Both ends of an interval in percent."""
    if interval is None:
        return NOTHING
    return f"{_percent(interval[0])} to {_percent(interval[1])}{NO_BREAK}%"


def _percent(value: float) -> str:
    # Without the sign that a little less than nothing keeps when it is rounded.
    shown = round(value, 1) + 0.0
    return f"{shown:.0f}" if shown >= 10 or shown == 0 else f"{shown:.1f}"


def millisecond_interval(bounds: Interval) -> str:
    """Both ends of an interval in milliseconds."""
    return f"{measured(bounds[0])} to {measured(bounds[1])}{NO_BREAK}ms"


def byte_count(value: float | None) -> str:
    """Bytes with binary prefixes."""
    return NOTHING if value is None else memory_size(value).replace(" ", NO_BREAK)


def speedup(value: float | None) -> str:
    """A ratio of two rates: `1.14x`, `6.7x`, `23x`."""
    return NOTHING if value is None else f"{value:.{_digits(value)}f}x"


def speedup_interval(bounds: Interval | None) -> str:
    """Both ends of a speed-up's interval: `[1.08, 1.20]`, `[2.0, 2.9]`.

    Both have the digits of the lower end, so that they can be compared.
    """
    if bounds is None:
        return NOTHING
    digits = _digits(bounds[0])
    return f"[{bounds[0]:.{digits}f},{NO_BREAK}{bounds[1]:.{digits}f}]"


def _digits(ratio: float) -> int:
    return 2 if ratio < 1.495 else 1 if ratio < 9.95 else 0


def bind_units(text: str) -> str:
    """Prose in which a number and its unit stay on one line."""
    return _BEFORE_UNIT.sub(NO_BREAK, text)
