"""Rules at their limits, from which on they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipediag.facts.limits import Threshold
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.vocabulary import FindingStatus

SHORT_OF_IT = 0.999


class Limit(NamedTuple):
    rule: Meta
    limit: Threshold
    finding: Callable[[float], Finding]
    """By what is measured, in the limit's unit."""
    at: FindingStatus
    """At the limit itself."""
    below: FindingStatus


def names_of(limits: Sequence[Limit]) -> list[str]:
    return [f"{limit.rule.id}: {limit.limit.name}" for limit in limits]


def stands(limit: Limit) -> None:
    """The rule tells its users of this limit, and keeps to it."""
    assert limit.limit in limit.rule.thresholds
    assert limit.finding(limit.limit.value).status == limit.at
    assert limit.finding(SHORT_OF_IT * limit.limit.value).status == limit.below
