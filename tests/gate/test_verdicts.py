from __future__ import annotations

import pytest

from pipediag.gate.result import Level
from pipediag.gate.verdicts import verdict_check
from tests.factories import make_session, make_verdict


@pytest.mark.parametrize(
    ("bottleneck", "severity", "fail_on", "outcome"),
    [
        ("input", "high", "error", "fail"),
        ("overhead", "high", "error", "fail"),
        ("transfer", "high", "error", "fail"),
        ("input", "moderate", "error", "warn"),
        ("input", "moderate", "warn", "fail"),
        ("input", "ok", "warn", "pass"),
        ("compute", "high", "warn", "pass"),
        ("balanced", "ok", "warn", "pass"),
        ("inconclusive", "unknown", "error", "inconclusive"),
    ],
)
def test_only_certain_waste_fails(
    bottleneck: str, severity: str, fail_on: Level, outcome: str
) -> None:
    session = make_session(verdict=make_verdict(bottleneck=bottleneck, severity=severity))
    assert verdict_check(session, fail_on).outcome == outcome


def test_an_inconclusive_verdict_gives_its_reasons() -> None:
    verdict = make_verdict(
        bottleneck="inconclusive",
        severity="unknown",
        summary="No verdict.",
        reasons=["Only 4 steps were seen."],
    )
    check = verdict_check(make_session(verdict=verdict), "error")
    assert check.sentence == "No verdict. Only 4 steps were seen."


def test_the_line_of_the_verdict_is_the_checks() -> None:
    check = verdict_check(make_session(verdict=make_verdict(file="train.py", line=12)), "error")
    assert (check.file, check.line) == ("train.py", 12)
