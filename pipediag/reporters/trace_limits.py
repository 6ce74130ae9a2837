"""How much of a trace report the terminal shows: less and less until it fits a screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TraceLimits:
    files: int
    devices: int
    """Shown in full, those with most idle time."""
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
    characters: int
    """Of one paragraph."""


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
    characters=10_000,
)

SPARING = (
    TraceLimits(
        files=4,
        devices=2,
        rows=8,
        causes=10,
        copies=6,
        kernels=5,
        gaps=6,
        findings=5,
        advised=3,
        characters=240,
    ),
    TraceLimits(
        files=3,
        devices=1,
        rows=8,
        causes=10,
        copies=6,
        kernels=3,
        gaps=5,
        findings=4,
        advised=1,
        characters=160,
    ),
    TraceLimits(
        files=2,
        devices=1,
        rows=6,
        causes=6,
        copies=4,
        kernels=3,
        gaps=3,
        findings=3,
        advised=0,
        characters=150,
    ),
    TraceLimits(
        files=1,
        devices=1,
        rows=2,
        causes=3,
        copies=2,
        kernels=1,
        gaps=2,
        findings=2,
        advised=0,
        characters=62,
    ),
)
"""Tried in turn; the last one fits any report at 80 columns."""
