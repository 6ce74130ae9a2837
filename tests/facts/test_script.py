"""How the script ended, and what a second run could try."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.script import (
    edits_for_second_run,
    failed_by_itself,
)
from pipediag.session.model import Script, Session
from pipediag.session.trials import NO_BUDGET
from pipediag.vocabulary import ScriptOutcome
from tests import factories
from tests.factories import make_finding, make_loop, make_session
from tests.records import SCRIPT
from tests.trials.bench import make_edit


def script(outcome: ScriptOutcome, status: int | None, detail: str | None = None) -> Script:
    return Script(path="t.py", args=[], outcome=outcome, status=status, detail=detail)


@pytest.mark.parametrize("outcome", ["raised", "killed", "exited"])
def test_a_script_that_nobody_else_ended_failed_by_itself(outcome: ScriptOutcome) -> None:
    ended = factories.make_session(script=script(outcome, 1), steps=None)
    assert "before enough steps were seen" in (failed_by_itself(ended) or "")


@pytest.mark.parametrize(
    ("outcome", "status"), [("interrupted", 130), ("timed-out", None), ("exited", 0)]
)
def test_one_that_was_ended_or_meant_to_end_did_not(
    outcome: ScriptOutcome, status: int | None
) -> None:
    ended = factories.make_session(script=script(outcome, status), steps=None)
    assert failed_by_itself(ended) is None


def ended(**overrides: Any) -> Script:
    return Script(**{"path": SCRIPT, "args": [], "outcome": "finished", "status": 0, **overrides})


def over(**overrides: Any) -> Session:
    """A script that finished, with one edit that was not tried."""
    findings = [make_finding(edit=make_edit("map"))]
    return make_session(**{"script": ended(), "findings": findings, **overrides})


def test_a_script_that_finished_with_something_untried_may_be_run_again() -> None:
    assert [edit.id for edit in edits_for_second_run(over())] == ["map"]


@pytest.mark.parametrize(
    "script",
    [
        ended(outcome="stopped", status=None),
        ended(outcome="raised", status=1),
        ended(outcome="exited", status=1),
        ended(outcome="interrupted", status=-2),
        ended(outcome="hung-in-exit", status=0),
        ended(second_run="The script was run a second time, and nothing was tried: it failed."),
    ],
    ids=lambda script: script.second_run or script.outcome,
)
def test_only_a_script_that_ended_well_and_once_is_run_again(script: Script) -> None:
    assert not edits_for_second_run(over(script=script))


@pytest.mark.parametrize(
    "changed",
    [
        {"loops": [make_loop(kind="in_graph")]},
        {"loops": [make_loop(replicas=2)]},
        {"loops": [make_loop(kind="tf_function", from_python=True)]},
        {"loops": []},
        {"trials_missing": NO_BUDGET},
        {"findings": [make_finding()]},
        {"findings": [make_finding(edit=replace(make_edit("map"), loop_id="loop_1"))]},
        {"findings": [make_finding(edit=make_edit("map"), status="pass")]},
        {"findings": [make_finding(edit=make_edit("map"), effect_on_results="not safe here")]},
    ],
    ids=[
        "in a function",
        "replicas",
        "fed by Python",
        "no loop",
        "not asked",
        "no edit",
        "of an evaluation",
        "passed",
        "not safe",
    ],
)
def test_where_it_would_show_nothing_it_is_not_made(changed: dict[str, Any]) -> None:
    assert not edits_for_second_run(over(**changed))
