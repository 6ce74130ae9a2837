"""Which failed findings came and went."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

from pipediag.comparison.result import ToldFinding
from pipediag.session.findings import Finding
from pipediag.session.model import Session


def only_in(sessions: Sequence[Session], other: Sequence[Session]) -> tuple[ToldFinding, ...]:
    """Findings of a rule that fails more often here than there, in the order of the session.

    Of several sessions the middle one counts: what one run of three finds is no change of the code.
    Those at places that the other side does not have come first.
    """
    told: list[ToldFinding] = []
    rules = dict.fromkeys(one.rule for session in sessions for one in _failed(session))
    for rule in rules:
        more = _count(sessions, rule) - _count(other, rule)
        if more > 0:
            known = {_place(one) for session in other for one in _failed(session, rule)}
            fullest = max(sessions, key=lambda session: len(_failed(session, rule)))
            found = sorted(_failed(fullest, rule), key=lambda one: _place(one) in known)
            told += [ToldFinding(rule, one.title, one.file, one.line) for one in found[:more]]
    return tuple(told)


def _count(sessions: Sequence[Session], rule: str) -> int:
    return median_low([len(_failed(session, rule)) for session in sessions])


def _failed(session: Session, rule: str | None = None) -> list[Finding]:
    return [
        one
        for one in session.findings
        if one.status == "fail" and not one.dropped and rule in (None, one.rule)
    ]


def _place(finding: Finding) -> tuple[str | None, int | None]:
    return finding.file, finding.line
