from __future__ import annotations

from pipediag.reporters.words import findings
from tests import factories
from tests.reporters import trial_sessions


def test_grouped_by_what_a_reader_does_with_them_in_the_order_of_the_session() -> None:
    session = factories.make_session(
        findings=[
            factories.make_finding("small", severity="warn", speedup_at_most=1.1),
            factories.make_finding("fine", status="pass"),
            factories.make_finding("large", severity="warn", speedup_at_most=3.0),
            factories.make_finding("severe", severity="error", speedup_at_most=None),
            factories.make_finding("known", status="informative"),
            factories.make_finding("proved", status="informative", trial=trial_sessions.CONFIRMED),
            factories.make_finding("broken", status="error"),
            factories.make_finding("unsure", status="inconclusive"),
            factories.make_finding("absent", status="not-applicable"),
        ]
    )

    groups = findings.group(session)

    assert [finding.rule for finding in groups.to_do] == ["small", "large", "severe", "proved"]
    assert [finding.rule for finding in groups.to_know] == ["known"]
    assert {finding.rule for finding in groups.unsettled} == {"broken", "unsure"}
    assert [finding.rule for finding in groups.fine] == ["fine"]
    assert [finding.rule for finding in groups.not_applicable] == ["absent"]


def test_a_bound_alone() -> None:
    assert findings.at_most(factories.make_finding(speedup_at_most=None)) is None
    assert findings.at_most(factories.make_finding()) == "at most 2.00x"
