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
    here, there = [_failed(one) for one in sessions], [_failed(one) for one in other]
    for rule in dict.fromkeys(rule for failed in here for rule in failed):
        more = _count(here, rule) - _count(there, rule)
        if more > 0:
            known = {_place(one) for failed in there for one in failed.get(rule, ())}
            fullest = max((failed.get(rule, []) for failed in here), key=len)
            found = sorted(fullest, key=lambda one: _place(one) in known)
            told += [ToldFinding(rule, one.title, one.file, one.line) for one in found[:more]]
    return tuple(told)


_Failed = dict[str, list[Finding]]
"""Of one session, by rule."""


def _count(side: Sequence[_Failed], rule: str) -> int:
    return median_low([len(failed.get(rule, ())) for failed in side])


def _failed(session: Session) -> _Failed:
    failed: _Failed = {}
    for one in session.findings:
        if one.status == "fail" and not one.dropped:
            failed.setdefault(one.rule, []).append(one)
    return failed


def _place(finding: Finding) -> tuple[str | None, int | None]:
    return finding.file, finding.line
