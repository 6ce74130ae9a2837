"""What would shorten an evaluation, whatever it is."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.edits import Edit
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import EffectOnResults


@dataclass(frozen=True)
class Cure:
    """A change of the pipeline that an evaluation reads, and what it would save."""

    title: str
    work: Operation
    """What is waited for."""
    wait_percent: float
    """Of the evaluation's steps."""
    saved_percent: float
    """Of them, at most, or as predicted where there is a speed-up."""
    advice: str
    effect: EffectOnResults
    condition: str | None = None
    """What only the user can decide before it is used."""
    edit: Edit | None = None
    untried: str | None = None
    bytes: int | None = None
    """That a cache would hold."""
    fills_first: bool = False
    """Whether the first evaluation gains nothing."""
    speedup: float | None = None
    """Of the evaluation's steps, where that can be predicted."""
