from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.runner.progress import Event
from pipediag.runner.trials_of_run import TrialDesk, with_trials
from pipediag.session.model import Session
from pipediag.session.trials import Trial, TrialRun
from pipediag.trials.outcome import TrialOutcome
from tests.factories import make_finding, make_session
from tests.trials.bench import make_edit


def desk_of(session: Session, **options: Any) -> TrialDesk:
    return TrialDesk(lambda: session, lambda _event: None, 60.0, **options)


def nobody(_command: Event, _limit_s: float) -> Event:
    raise AssertionError("There was nothing to ask for.")


def waiting(**overrides: Any) -> Event:
    return {"loop": "loop_0", "alone": False, "goes_on": False, "since_ns": 0, **overrides}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"run_to_end": True}, "`--run-to-end` lets the script go on; what changes the model"),
        (
            {"look_ahead_s": 5.0},
            "The loop ended within the 5 s of `--look-ahead`, so the script was left to end by "
            "itself; what changes the model",
        ),
    ],
)
def test_why_the_script_went_on_is_said_as_it_was(options: dict[str, Any], reason: str) -> None:
    session = make_session(findings=[make_finding(edit=make_edit("once", once=True))])
    desk = desk_of(session, **options)
    desk(waiting(goes_on=True), nobody)
    assert desk.fault is None
    trial = desk.outcomes["loop_0"].trials["once"]
    assert str(trial.reason).startswith(reason)


@pytest.mark.parametrize(
    ("run_to_end", "goes_on", "budget_s"),
    [(False, True, 30.0), (False, False, 60.0), (True, True, 60.0)],
)
def test_a_short_loop_leaves_half_of_the_budget_to_a_later_one(
    run_to_end: bool, goes_on: bool, budget_s: float
) -> None:
    desk = desk_of(make_session(findings=[]), run_to_end=run_to_end)
    desk(waiting(goes_on=goes_on), nobody)
    assert desk.fault is None
    assert desk.outcomes["loop_0"].run.budget_s == budget_s


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
