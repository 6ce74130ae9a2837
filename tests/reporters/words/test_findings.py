from __future__ import annotations

from pipediag.reporters.words import findings
from tests import factories
from tests.reporters import trial_sessions


def test_grouped_by_what_a_reader_does_with_them_in_the_order_of_the_session() -> None:
    session = factories.make_session(
        findings=[
            factories.make_finding("small", severity="warn", predicted_speedup=1.1),
            factories.make_finding("fine", status="pass"),
            factories.make_finding("large", severity="warn", predicted_speedup=3.0),
            factories.make_finding("severe", severity="error", predicted_speedup=None),
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


def test_a_prediction_alone() -> None:
    assert findings.prediction(factories.make_finding(predicted_speedup=None)) is None
    assert findings.prediction(factories.make_finding()) == "2.00x predicted"
