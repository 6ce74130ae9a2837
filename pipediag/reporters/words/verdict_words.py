"""How bad it is, as the first line of every report says it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipediag.facts.names import RUN_PART
from pipediag.facts.order import known_gain, to_act_on, worth_doing
from pipediag.reporters.words import labels
from pipediag.session.model import Session
from pipediag.vocabulary import VerdictSeverity

LONGEST_HEADING = 150
"""Characters: two lines of a heading on a page."""
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`])")

MUCH = 1.2
"""Own choice, as much as an input wait at the limit from which it is the bottleneck would gain."""


@dataclass(frozen=True)
class Shown:
    """The severity that sets colours and signs, and what is said beside the bottleneck."""

    severity: VerdictSeverity
    text: str


def label(session: Session) -> str:
    """What is slow, in a word or two: the part of the run that the verdict is about, or else what
    limits its steps."""
    verdict = session.verdict
    where = verdict.where
    if where in (None, "steps") or (where == "epoch_start" and verdict.bottleneck == "input"):
        return labels.BOTTLENECK[verdict.bottleneck]
    return RUN_PART[where]


def shown(session: Session) -> Shown:
    """The verdict's own; where it finds nothing severe and a change is much, that is told.

    A step that computes all the time is no fault of the pipeline's, and may still compute what it
    need not.
    """
    severity = session.verdict.severity
    if severity == "ok" and _gained(session) >= MUCH:
        return Shown("moderate", "a change makes it faster")
    if severity == "ok" and _promised(session) >= MUCH:
        return Shown("moderate", "a change may make it faster")
    return Shown(severity, labels.SEVERITY[severity])


@dataclass(frozen=True)
class Lead:
    """The verdict's summary as two lines of heading and what follows them."""

    heading: str
    rest: str


def lead(summary: str) -> Lead:
    """The first sentence; where that is long, as much of it as says the same by itself."""
    first, *others = _SENTENCE.split(summary, maxsplit=1)
    rest = " ".join(others)
    if len(first) > LONGEST_HEADING and "; " in first:
        heading, _, behind = first.partition("; ")
        return Lead(f"{heading}.", f"{_capitalised(behind)} {rest}".strip())
    return Lead(first, rest)


def _capitalised(text: str) -> str:
    """What was the middle of a sentence; code at its head stays as it is."""
    return text[:1].upper() + text[1:]


def _gained(session: Session) -> float:
    """By the best change that a trial confirmed."""
    confirmed = [
        finding.trial.speedup or 1.0
        for finding in session.findings
        if finding.trial.state == "confirmed" and to_act_on(finding) and not finding.about_results
    ]
    return max(confirmed, default=1.0)


def _promised(session: Session) -> float:
    """By the best change that no trial has decided yet, at most."""
    untried = [
        known_gain(finding) or 1.0
        for finding in session.findings
        if finding.trial.state == "not_tried" and worth_doing(finding) and finding.status == "fail"
    ]
    return max(untried, default=1.0)
