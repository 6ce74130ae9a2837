from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.search.searching import META
from pipediag.runner.tried_session import with_remark, with_trials
from pipediag.session.model import Session
from pipediag.session.trials import Trial, TrialRun
from pipediag.trials.outcome import TrialOutcome
from tests.evaluations import validation
from tests.factories import make_finding, make_loop, make_session
from tests.trials.bench import make_edit


def tried(**trials: Trial) -> dict[str, TrialOutcome]:
    run = TrialRun(loop_id="loop_0", consumer="training", budget_s=60.0, used_s=10.0)
    return {"loop_0": TrialOutcome(run=run, trials=trials)}


def trial(state: Any, speedup: float) -> Trial:
    return Trial(state=state, reason=None, speedup=speedup, ci95=(speedup, speedup), blocks=5)


def named(rule: str, **overrides: Any) -> Any:
    return make_finding(rule, edit=make_edit(rule), advice=rule, **overrides)


def test_what_trials_showed_decides_the_order_and_what_to_do_first() -> None:
    session = make_session(
        findings=[named("large"), named("small"), named("frozen", subject="correctness")]
    )
    outcomes = tried(
        large=trial("refuted", 1.0), small=trial("confirmed", 1.2), frozen=trial("refuted", 0.9)
    )
    concluded = with_trials(session, outcomes, "Not reached.")
    assert [finding.rule for finding in concluded.findings] == ["frozen", "small", "large"]
    assert concluded.verdict.next_steps == ["frozen", "small"]


@pytest.mark.parametrize("make", [dict, tried])
def test_no_trial_changes_nothing_about_the_order(make: Callable[[], Any]) -> None:
    session = make_session(findings=[named("large"), named("small")])
    concluded = with_trials(session, make(), "Not reached.")
    assert [finding.rule for finding in concluded.findings] == ["large", "small"]


def test_a_remark_goes_with_every_reason_for_which_an_edit_was_not_tried() -> None:
    session = make_session(findings=[named("large"), named("small"), make_finding("plain")])
    some = with_trials(session, tried(small=trial("confirmed", 1.2)), "Not reached.")
    remarked = with_remark(some, "Try again.")
    reasons = {finding.rule: finding.trial.reason for finding in remarked.findings}
    assert reasons["small"] is None
    assert str(reasons["large"]).endswith(" Try again.")
    assert reasons["plain"] == "No trial was made."
    assert remarked.trials_missing is None
    none = with_remark(with_trials(session, {}, "Not reached."), "Try again.")
    assert none.trials_missing == "Not reached. Try again."
    assert with_remark(none, None) is none


def test_what_was_tried_beyond_the_rules_stands_beside_their_findings() -> None:
    found, vain = (
        make_finding(META.id, status="informative", edit=make_edit(name), advice=name)
        for name in ("found", "vain")
    )
    outcomes = tried(
        large=trial("refuted", 1.0), found=trial("confirmed", 1.5), vain=trial("refuted", 1.0)
    )
    outcomes["loop_0"] = replace(outcomes["loop_0"], further=(found, vain))
    concluded = with_trials(make_session(findings=[named("large")]), outcomes, "Not reached.")

    assert concluded.findings[0].advice == "found"
    assert concluded.verdict.next_steps == ["found"]
    counted = concluded.findings[-1]
    assert counted.title == "A search beyond the rules: one change more tried, none helps"


# What evaluates.


def evaluating(**loop: Any) -> Session:
    """A finding on the training, and one on what a validation reads."""
    edit = replace(make_edit("cache"), loop_id="loop_1")
    of_evaluation = make_finding("cached", edit=edit, part="evaluation")
    loops = [make_loop(), validation(**loop)]
    return make_session(findings=[named("large"), of_evaluation], loops=loops)


def of_evaluation(**trials: Trial) -> dict[str, TrialOutcome]:
    run = TrialRun(loop_id="loop_1", consumer="pipeline alone", budget_s=20.0, used_s=10.0)
    return {"loop_1": TrialOutcome(run=run, trials=trials)}


def test_trials_of_an_evaluation_stand_beside_those_of_the_training() -> None:
    outcomes = {
        **tried(large=trial("refuted", 1.0)),
        **of_evaluation(cache=trial("confirmed", 4.0)),
    }
    session = with_trials(evaluating(), outcomes, "Not reached.")
    states = {finding.rule: finding.trial.state for finding in session.findings}

    assert states == {"large": "refuted", "cached": "confirmed"}
    assert [run.loop_id for run in session.evaluation_trials] == ["loop_1"]
    assert session.trials is not None
    cached = next(finding for finding in session.findings if finding.rule == "cached")
    assert session.trials_of(cached.edit) == session.evaluation_trials[0]
    assert session.trials_of(session.findings[1].edit) == session.trials
    assert session.trials_of(None) == session.trials


def test_an_evaluation_may_be_tried_where_its_training_was_not() -> None:
    outcomes = of_evaluation(cache=trial("confirmed", 4.0))
    session = with_trials(evaluating(), outcomes, "Not reached.")
    trials = {finding.rule: finding.trial for finding in session.findings}

    assert session.findings[0].rule == "cached"
    assert (trials["cached"].state, trials["large"].reason) == ("confirmed", "Not reached.")
    assert (session.trials, session.trials_missing) == (None, "Not reached.")


@pytest.mark.parametrize(
    ("loop", "reason"), [({}, "was gone, or no time"), ({"untried": "It writes."}, "It writes.")]
)
def test_why_an_evaluation_was_not_tried_is_its_own_reason(
    loop: dict[str, Any], reason: str
) -> None:
    outcomes = tried(large=trial("refuted", 1.0))
    session = with_remark(with_trials(evaluating(**loop), outcomes, "Not reached."), "Try again.")
    trials = {finding.rule: finding.trial for finding in session.findings}

    assert trials["cached"].state == "not_tried"
    assert reason in str(trials["cached"].reason)
    assert "Try again." not in str(trials["cached"].reason)
