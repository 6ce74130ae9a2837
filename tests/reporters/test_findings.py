from __future__ import annotations

from pipediag.reporters import findings
from tests import factories
from tests.reporters import trial_sessions


def test_sorted_by_what_a_reader_does_with_them() -> None:
    session = factories.make_session(
        findings=[
            factories.make_finding("small", severity="warn", predicted_speedup=1.1),
            factories.make_finding("fine", status="pass"),
            factories.make_finding("large", severity="warn", predicted_speedup=3.0),
            factories.make_finding("severe", severity="error", predicted_speedup=None),
            factories.make_finding("known", status="informative"),
            factories.make_finding("broken", status="error"),
            factories.make_finding("unsure", status="inconclusive"),
            factories.make_finding("absent", status="not-applicable"),
        ]
    )

    groups = findings.group(session)

    assert [finding.rule for finding in groups.to_do] == ["severe", "large", "small"]
    assert [finding.rule for finding in groups.to_know] == ["known"]
    assert {finding.rule for finding in groups.unsettled} == {"broken", "unsure"}
    assert [finding.rule for finding in groups.fine] == ["fine"]
    assert [finding.rule for finding in groups.not_applicable] == ["absent"]


def test_what_must_be_dealt_with_first_stands_first() -> None:
    session = factories.make_session(
        findings=[
            factories.make_finding("severe", severity="error", needs_first="cheap"),
            factories.make_finding("cheap", severity="info"),
            factories.make_finding("other", severity="error", needs_first="absent"),
        ]
    )

    rules = [finding.rule for finding in findings.group(session).to_do]

    assert rules.index("cheap") < rules.index("severe")
    assert "other" in rules


def test_confirmed_by_a_trial_comes_first_and_refuted_last() -> None:
    rules = [f.rule for f in findings.group(trial_sessions.everything_tried()).to_do]

    assert rules == [
        "serial-stateful-map",
        "missing-cache",
        "small-batch",
        "random-map",
        "host-overhead",
        "missing-prefetch",
    ]


def test_what_was_confirmed_by_itself_waits_for_nothing() -> None:
    session = factories.make_session(
        findings=[
            factories.make_finding("first"),
            factories.make_finding("proved", needs_first="first", trial=trial_sessions.CONFIRMED),
        ]
    )

    assert [f.rule for f in findings.group(session).to_do] == ["proved", "first"]


def test_a_prediction_alone() -> None:
    assert findings.prediction(factories.make_finding(predicted_speedup=None)) is None
    assert findings.prediction(factories.make_finding()) == "2.00x predicted"
