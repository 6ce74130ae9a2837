"""What the session of a first run says once a second one was made, or was not."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipediag.runner.conclusion import (
    NOT_WAITED,
    OFFER,
    Recorded,
    remark,
    why_not_tried,
    with_second_run,
)
from pipediag.runner.output import OutputDirectory, prepare_output
from pipediag.runner.second_run import SecondRun
from pipediag.runner.tried_session import with_trials
from pipediag.session.model import Session
from pipediag.session.run import Script
from pipediag.session.settings import RunSettings
from pipediag.session.store import load_session
from pipediag.session.trials import NO_BUDGET, Trial, TrialRun
from pipediag.trials.outcome import TrialOutcome
from tests.factories import make_finding, make_session, make_verdict
from tests.trials.bench import make_edit

SETTINGS = RunSettings("train.py", (), False, "capture")


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OutputDirectory:
    monkeypatch.chdir(tmp_path)
    return prepare_output(Path("out"), force=False)


def session(outcome: Any = "finished", status: int | None = 0, **overrides: Any) -> Session:
    script = Script(path="train.py", args=[], outcome=outcome, status=status)
    findings = [make_finding(edit=make_edit("map"))]
    return make_session(**{"script": script, "findings": findings, **overrides})


def recorded() -> Recorded:
    return Recorded(with_trials(session(), {}, NOT_WAITED), session(), None)


def measured(state: Any, speedup: float | None) -> dict[str, TrialOutcome]:
    run = TrialRun(loop_id="loop_0", consumer="training", budget_s=60.0, used_s=10.0)
    ci95 = None if speedup is None else (speedup, speedup)
    trial = Trial(state=state, reason=None, speedup=speedup, ci95=ci95, consumer="training")
    return {"loop_0": TrialOutcome(run=run, trials={"map": trial})}


def test_what_the_second_run_showed_stands_in_the_session_of_the_first(
    output: OutputDirectory,
) -> None:
    Path("log").write_text("half", encoding="utf-8")
    second = SecondRun("It was made.", measured("confirmed", 2.0), time.time() - 60, True)
    concluded = with_second_run(recorded(), SETTINGS, second, output)

    assert concluded == load_session(output.path)
    assert concluded.findings[0].trial.state == "confirmed"
    assert concluded.trials_missing is None
    assert concluded.script.outcome == "finished"
    assert concluded.script.second_run == "It was made."
    assert concluded.script.files_written == ["log"]
    assert concluded.notes[0] == "It was made."
    assert concluded.notes[1].startswith("The script was stopped in its second run. While it ran,")


def test_a_second_run_that_shows_nothing_takes_nothing_away(output: OutputDirectory) -> None:
    first = recorded()
    second = SecondRun("Nothing was tried.", began_s=time.time() - 60)
    concluded = with_second_run(first, SETTINGS, second, output)

    assert concluded.findings[0].trial.reason == f"{NOT_WAITED} Nothing was tried."
    assert concluded.trials_missing == f"{NOT_WAITED} Nothing was tried."
    assert concluded.script.files_written == []  # it came to its own end
    assert concluded.steps == first.session.steps


def test_the_lines_of_the_source_are_kept_unless_none_were_wanted(output: OutputDirectory) -> None:
    script = Path("script.py").resolve()
    script.write_text("a = 1\nb = 2\n", encoding="utf-8")
    named = session(verdict=make_verdict(file=str(script), line=2, op_id=None))
    second = SecondRun("Nothing was tried.")
    later = time.time() + 60

    kept = with_second_run(
        Recorded(named, named, None), SETTINGS, second, output, patches_since_s=later
    )
    without = with_second_run(Recorded(named, named, None), SETTINGS, second, output)

    assert kept.verdict.source is not None
    assert kept.verdict.source.lines[:2] == ["a = 1", "b = 2"]
    assert without.verdict.source is None


@pytest.mark.parametrize(
    ("ended", "rerun", "said"),
    [
        (session(), False, OFFER),
        (session(), True, None),
        (session(trials_missing=NO_BUDGET), False, None),
        (session("raised", 1), False, None),
        (session("raised", 1), True, "It did not end well, so it was not run a second time."),
        (session("stopped", None), True, None),
        (session("raised", 1, findings=[]), True, None),
    ],
)
def test_what_is_said_of_a_second_run_that_was_not_made(
    ended: Session, rerun: bool, said: str | None
) -> None:
    assert remark(ended, rerun=rerun) == said


@pytest.mark.parametrize(
    ("budget_s", "rerun", "call"),
    [(60.0, False, None), (0.0, False, None), (60.0, True, None), (0.0, False, "watch")],
)
def test_a_run_that_goes_on_says_why_nothing_was_tried(
    budget_s: float, rerun: bool, call: Any
) -> None:
    settings = replace(SETTINGS, run_to_end=True, call=call)
    said = why_not_tried(settings, budget_s, rerun=rerun)

    assert "observe" in said
    assert ("`--rerun`" in said or "--rerun train.py`" in said) is not rerun
