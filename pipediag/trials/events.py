"""What trials tell while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Pydantic takes its time, and a progress line needs these words before anything was measured.
    from pipediag.session.record import Interval
    from pipediag.session.trials import Basis
    from pipediag.vocabulary import TrialState


@dataclass(frozen=True)
class Trying:
    """An arm is built next, or a block of it is run."""

    label: str
    left_s: float
    """Time until the budget ends."""


@dataclass(frozen=True)
class Decided:
    """An edit is settled. Figures are None where it was not tried or has too few rounds."""

    edit: str
    label: str
    state: TrialState
    speedup: float | None
    ci95: Interval | None
    basis: Basis | None


TrialEvent = Trying | Decided
OnEvent = Callable[[TrialEvent], None]
