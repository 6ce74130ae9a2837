"""What trials hand back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipediag.session.trials import Combined, PipelineAlone, Trial, TrialRun

Event = dict[str, Any]
OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class TrialOutcome:
    """All that one call of `run_trials` found."""

    run: TrialRun
    trials: dict[str, Trial] = field(default_factory=dict)
    """By the id of the edit."""
    combined: Combined | None = None
    combined_missing: str | None = None
    pipeline_alone: PipelineAlone | None = None
    pipeline_alone_missing: str | None = None
