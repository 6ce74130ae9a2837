"""What a measure gives where it has no number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Missing:
    """Stands in for a section of the session that could not be measured."""

    reason: str
    """Why, as a sentence; the session keeps it as `<section>_missing`."""
