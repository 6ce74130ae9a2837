"""The result of one look at the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "problem"]


@dataclass(frozen=True)
class Check:
    name: str
    state: State
    found: str
    follows: str = ""
    """What it means for a measurement; empty where it means nothing."""
    do: str = ""
    """What to do about it; empty where nothing need be done."""
