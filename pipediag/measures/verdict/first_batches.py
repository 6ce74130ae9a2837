"""The verdict where a loop waits between its epochs for longer than for anything within a step."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.facts.later_epochs import first_batch_percent, steps_beside_percent
from pipediag.facts.limits import INPUT_BOUND_PERCENT
from pipediag.facts.step import group_percents
from pipediag.measures.verdict.culprits import (
    Culprit,
    ShuffleFill,
    input_culprit,
    shuffle_fill,
)
from pipediag.session.model import Session
from pipediag.session.steps import Share
from pipediag.vocabulary import StepClass


def outweigh_the_steps(session: Session) -> bool:
    """Whether waits for an epoch's first batch take more of the loop than any part of its steps.

    XProf's limit for the input wait of a step is held against the loop.
    """
    waiting, steps = first_batch_percent(session), steps_beside_percent(session)
    if steps is None or waiting < INPUT_BOUND_PERCENT:
        return False
    if session.breakdown is None:
        return waiting > steps
    return waiting > steps * _largest_percent(session.breakdown) / 100.0


def behind_the_waits(session: Session) -> ShuffleFill | Culprit | None:
    """A shuffle that fills, or else what costs most of the input; None where that is not known."""
    fill = shuffle_fill(session.pipeline)
    return fill or input_culprit(session.pipeline, session.diagnosed_loop(), session.host)


def _largest_percent(breakdown: Mapping[StepClass, Share]) -> float:
    """Percent of the step that its largest part takes, be it known what that is or not."""
    return max(
        breakdown["input_wait"].percent,
        breakdown["unattributed"].percent,
        *group_percents(breakdown).values(),
    )
