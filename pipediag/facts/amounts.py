"""Times, shares and sizes in sentences, in a unit in which they do not round to nothing."""

from __future__ import annotations

_KIB = 1024.0


def time_taken(ms: float) -> str:
    """`0.3 ms`, `42 ms`, `2.1 s`."""
    if ms >= 999.5:
        return f"{ms / 1000:.1f} s"
    if ms >= 10:
        return f"{ms:.0f} ms"
    return f"{ms:.1f} ms" if ms >= 0.1 else "under 0.1 ms"


def exact_time(ms: float) -> str:
    """`0.31 ms`, `17.7 ms`, `1.07 s`, which would be a power of ten in milliseconds."""
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1000:.3g} s"


def share(percent: float) -> str:
    """`34.1 %`, `under 0.1 %`; nothing at all is `0 %`."""
    if 0.0 < percent < 0.05:
        return "under 0.1 %"
    return f"{percent:.1f} %" if percent else "0 %"


def memory_size(count: float) -> str:
    """Bytes with a binary prefix: `700 KiB`, `42 MiB`, `3.2 GiB`."""
    if count >= _KIB**3:
        return f"{count / _KIB**3:.1f} GiB"
    if count >= _KIB**2:
        return f"{count / _KIB**2:.0f} MiB"
    return f"{count / _KIB:.0f} KiB" if count >= _KIB else f"{count:.0f} bytes"
