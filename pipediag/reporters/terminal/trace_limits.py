"""How much of a trace report the terminal shows: less and less until it fits a screen."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class TraceLimits:
    files: int
    devices: int
    """Shown in full: those with most idle time, in order of their names."""
    rows: int
    """Devices in the table where there are several."""
    causes: int
    copies: int
    """Directions."""
    kernels: int
    gaps: int
    findings: int
    advised: int
    """How many findings show their advice."""
    first_advice: int
    """Characters of the first finding's advice; kernels and gaps go before it is cut."""
    characters: int
    """Of any other paragraph."""
    unsettled: bool = False
    """Whether findings are shown that could not be decided."""


UNLIMITED = TraceLimits(
    files=1000,
    devices=1000,
    rows=1000,
    causes=20,
    copies=20,
    kernels=20,
    gaps=100,
    findings=1000,
    advised=1000,
    first_advice=10_000,
    characters=10_000,
    unsettled=True,
)

_MOST = TraceLimits(
    files=4,
    devices=2,
    rows=8,
    causes=10,
    copies=6,
    kernels=5,
    gaps=6,
    findings=5,
    advised=3,
    first_advice=1000,
    characters=240,
)
_ONE_DEVICE = replace(_MOST, files=3, devices=1, kernels=3, gaps=5, findings=4)
_ONE_ADVICE = replace(_ONE_DEVICE, kernels=2, gaps=3, advised=1)
_FEW_PARTS = replace(_ONE_ADVICE, files=2, rows=6, causes=6, copies=4, kernels=1, gaps=2)
_NO_KERNELS = replace(_FEW_PARTS, kernels=0, gaps=1, findings=3, first_advice=500, characters=150)
_LEAST = TraceLimits(
    files=1,
    devices=1,
    rows=2,
    causes=3,
    copies=2,
    kernels=1,
    gaps=2,
    findings=2,
    advised=1,
    first_advice=150,
    characters=62,
)

_NO_ADVICE = replace(_LEAST, kernels=0, gaps=1, advised=0)

SPARING = (_MOST, _ONE_DEVICE, _ONE_ADVICE, _FEW_PARTS, _NO_KERNELS, _LEAST, _NO_ADVICE)
"""Tried in turn; the last one fits any report at 80 columns."""
