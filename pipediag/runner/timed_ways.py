"""What is asked for where ways out of tables are timed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TimedWays:
    """How long, and into what hashing divides a table."""

    budget_s: float
    buckets: int
    """Ids that share a row."""
