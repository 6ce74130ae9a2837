"""How much of a session the terminal shows: less and less until it fits a screen."""

from __future__ import annotations

from dataclasses import dataclass, replace

MAX_LINES = 38
"""Under forty with the shell's prompt below."""


@dataclass(frozen=True)
class Limits:
    reasons: int
    next_steps: int
    notes: int
    """Of what limits this run's diagnosis, or went otherwise than planned."""
    classes: int
    operations: int
    embeddings: int
    findings: int
    advised: int
    """How many findings show their advice."""
    dropped: int
    """Of the confirmed changes that the combination leaves out."""
    phases: bool
    """Whether consumer alone, pipeline alone and both are held against each other."""
    characters: int
    """Of one paragraph."""
    leading_characters: int
    """Of the verdict and of each thing to do first, which matter more than the rest."""


UNLIMITED = Limits(
    reasons=100,
    notes=100,
    next_steps=100,
    classes=9,
    operations=1000,
    embeddings=1000,
    findings=1000,
    advised=1000,
    dropped=1000,
    phases=True,
    characters=10_000,
    leading_characters=10_000,
)

_LEAST = Limits(
    reasons=1,
    notes=0,
    next_steps=1,
    classes=3,
    operations=2,
    embeddings=1,
    findings=2,
    advised=0,
    dropped=0,
    phases=False,
    characters=150,
    leading_characters=150,
)

SPARING = (
    Limits(
        reasons=3,
        notes=2,
        next_steps=2,
        classes=7,
        operations=5,
        embeddings=3,
        findings=5,
        advised=3,
        dropped=2,
        phases=True,
        characters=240,
        leading_characters=400,
    ),
    Limits(
        reasons=2,
        notes=1,
        next_steps=1,
        classes=6,
        operations=4,
        embeddings=2,
        findings=4,
        advised=1,
        dropped=1,
        phases=True,
        characters=156,
        leading_characters=400,
    ),
    Limits(
        reasons=2,
        notes=1,
        next_steps=1,
        classes=5,
        operations=4,
        embeddings=2,
        findings=4,
        advised=0,
        dropped=1,
        phases=False,
        characters=156,
        leading_characters=400,
    ),
    Limits(
        reasons=1,
        notes=1,
        next_steps=1,
        classes=4,
        operations=3,
        embeddings=1,
        findings=4,
        advised=0,
        dropped=0,
        phases=False,
        characters=156,
        leading_characters=300,
    ),
    replace(_LEAST, leading_characters=300),
    _LEAST,
)
"""Tried in turn; the last one fits any session at 80 columns."""
