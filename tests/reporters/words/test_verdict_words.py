"""The severity that a report's first line shows."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.reporters.words.verdict_words import label, lead, shown
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests.factories import make_finding, make_session, make_verdict
from tests.trials.bench import make_edit


def session(severity: str = "ok", **finding: Any) -> Session:
    found = make_finding("a-rule", edit=make_edit("a-rule"), **finding)
    return make_session(
        verdict=make_verdict(bottleneck="compute", severity=severity), findings=[found]
    )


def trial(speedup: float, state: TrialState = "confirmed") -> Trial:
    return Trial(state=state, reason=None, speedup=speedup)


@pytest.mark.parametrize(
    ("speedup", "severity", "text"),
    [(1.2, "moderate", "a change makes it faster"), (1.19, "ok", "no severe bottleneck")],
)
def test_a_step_that_only_computes_may_compute_too_much(
    speedup: float, severity: str, text: str
) -> None:
    found = shown(session(trial=trial(speedup)))
    assert (found.severity, found.text) == (severity, text)


@pytest.mark.parametrize(
    ("gains", "text"),
    [
        ({"speedup_at_most": 6.68}, "a change may make it faster"),
        ({"speedup_at_most": 1.2}, "a change may make it faster"),
        ({"speedup_at_most": 1.19}, "no severe bottleneck"),
        ({"speedup_at_most": 6.68, "status": "informative"}, "no severe bottleneck"),
        ({"speedup_at_most": 6.68, "subject": "quality"}, "no severe bottleneck"),
    ],
)
def test_a_large_promise_is_not_told_beside_that_nothing_is_severe(
    gains: dict[str, Any], text: str
) -> None:
    assert shown(session(**{"speedup_at_most": None, **gains})).text == text


@pytest.mark.parametrize(
    "finding",
    [
        {"speedup_at_most": None},
        {"trial": trial(2.0, "inconclusive")},
        {"trial": trial(2.0), "subject": "correctness"},
    ],
)
def test_what_was_not_confirmed_to_be_faster_changes_nothing(finding: dict[str, Any]) -> None:
    assert shown(session(**finding)).severity == "ok"


@pytest.mark.parametrize("severity", ["moderate", "high", "unknown"])
def test_any_other_severity_is_the_verdicts(severity: str) -> None:
    assert shown(session(severity, trial=trial(9.0))).severity == severity


def test_the_first_sentence_is_the_heading() -> None:
    found = lead("Input-bound: 64 % (9.37 ms) at train.py:25. Free input gains 2.75x. More.")
    assert found.heading == "Input-bound: 64 % (9.37 ms) at train.py:25."
    assert found.rest == "Free input gains 2.75x. More."
    assert lead("One.").rest == ""


def test_a_long_first_sentence_is_cut_where_it_says_the_same_by_itself() -> None:
    found = lead(f"{'A long wait ' * 11}each time; `map` at t.py:2 makes it; and so on. Then more.")
    assert found.heading.endswith("each time.")
    assert found.rest == "`map` at t.py:2 makes it; and so on. Then more."
    endless = "word " * 100
    assert lead(endless).heading == endless


@pytest.mark.parametrize(
    ("bottleneck", "where", "expected"),
    [
        ("compute", None, "Compute-bound"),
        ("compute", "steps", "Compute-bound"),
        ("compute", "evaluation", "Evaluation"),
        ("input", "epoch_start", "Input-bound"),
        ("compute", "epoch_start", "Waiting for first batches"),
    ],
)
def test_the_first_words_are_about_what_the_verdict_is_about(
    bottleneck: str, where: str | None, expected: str
) -> None:
    found = make_session(verdict=make_verdict(bottleneck=bottleneck, where=where))
    assert label(found) == expected
