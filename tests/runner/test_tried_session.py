from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.runner.tried_session import with_remark, with_trials
from pipediag.session.trials import Trial, TrialRun
from pipediag.trials.outcome import TrialOutcome
from tests.factories import make_finding, make_session
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
