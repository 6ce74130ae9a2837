"""Whether trials were made, whatever they found: what an edit buys is the machine's."""

from __future__ import annotations

from pipediag.session.model import Session
from tests.samples.expectation import Expectation


def untried(expected: Expectation, session: Session) -> list[str]:
    """A sentence where none of the rules that trials are to confirm was tried."""
    rules = expected.trials.confirmed
    trials = {one.rule: one.trial for one in session.findings if one.rule in rules}
    if not rules or any(trial.state != "not_tried" for trial in trials.values()):
        return []
    reasons = {rule: trial.reason for rule, trial in trials.items()}
    return [f"none of {rules} was tried: {reasons}"]
