"""No report is a dead end: where no rule has a change, it says what to try or to measure next."""

from __future__ import annotations

from typing import Any

from pipediag.reporters.words.ways_on import ways_on
from pipediag.session.model import Script
from pipediag.session.trials import NO_BUDGET
from tests import factories, records
from tests.reporters import sessions, trial_sessions


def said(verdict: dict[str, Any], **overrides: Any) -> list[str]:
    made = factories.make_verdict(**verdict)
    session = factories.make_session(**{"verdict": made, "findings": [], **overrides})
    return [way.replace("\xa0", " ") for way in ways_on(session)]


def test_where_nothing_is_worth_doing_it_is_what_the_verdict_leads_to() -> None:
    assert said({"next_steps": ["Shorten `map`."]}) == ["Shorten `map`."]


def test_what_was_left_open_gets_more_time() -> None:
    undecided = factories.make_finding(trial=trial_sessions.UNDECIDED)
    ways = said(
        {"severity": "ok"}, findings=[undecided], trials=trial_sessions.make_run(budget_s=60.0)
    )
    assert ways == [
        "1 change could not be decided in the time for trials: `--budget 180` gives them more."
    ]


def test_trials_that_nobody_asked_for_may_show_more() -> None:
    verdict = {"next_steps": ["Shorten `map`."]}
    assert "`--budget 0`" in said(verdict, trials_missing=NO_BUDGET)[-1]


def test_an_inconclusive_run_is_measured_longer() -> None:
    ways = said(
        {"bottleneck": "inconclusive", "severity": "unknown"}, steps=records.make_steps(count=10)
    )
    assert ways == ["Measure longer: `--steps 200`."]


def test_of_a_script_that_failed_more_steps_tell_nothing() -> None:
    unknown = {"bottleneck": "inconclusive", "severity": "unknown"}
    raised = Script(path="train.py", args=[], outcome="raised", status=1)
    assert said(unknown, script=raised, breakdown=None) == []


def test_on_pytorch_its_own_profiler_says_more_than_more_steps() -> None:
    torch = factories.make_session().environment.model_copy(update={"keras_backend": "torch"})
    unknown = {"bottleneck": "inconclusive", "severity": "unknown"}
    shares = records.make_breakdown(input_wait=1.0)
    [way] = said(unknown, environment=torch, breakdown=shares)
    assert "torch.profiler" in way
    assert "--steps" not in way


def test_nothing_where_there_is_something_to_do_or_nothing_to_gain() -> None:
    assert ways_on(factories.make_session()) == []
    assert ways_on(factories.make_compute_bound_session()) == []
    assert ways_on(sessions.nothing_measured()) == []
