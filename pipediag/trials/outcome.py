"""What trials hand back."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.session.findings import Finding
from pipediag.session.trials import Combined, PipelineAlone, Trial, TrialRun


@dataclass(frozen=True)
class TrialOutcome:
    """All that one call of `run_trials` found."""

    run: TrialRun
    trials: dict[str, Trial] = field(default_factory=dict)
    """By the id of the edit."""
    further: tuple[Finding, ...] = ()
    """What was tried beside the findings of the rules, as none of theirs was confirmed."""
    combined: Combined | None = None
    combined_missing: str | None = None
    pipeline_alone: PipelineAlone | None = None
    pipeline_alone_missing: str | None = None
