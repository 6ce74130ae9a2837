from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.facts.names import default_directory
from pipediag.reporters.terminal.next_command import NextCommand, next_command
from pipediag.session.findings import Patch
from pipediag.session.model import Script
from tests import factories, records
from tests.reporters import sessions, trial_sessions
from tests.trials.bench import make_edit


def test_after_a_finding_the_same_run_again() -> None:
    script = Script(path="my train.py", args=["--lr", "1e-3"], outcome="stopped")
    session = factories.make_session(script=script)

    assert next_command(session, Path("reports/my train")) == NextCommand(
        "After the edit", "pipediag analyze 'my train.py' --lr 1e-3"
    )


def test_a_module_and_another_directory() -> None:
    script = Script(path="package.train", args=[], module=True, outcome="stopped")
    session = factories.make_session(script=script)

    assert next_command(session, Path("out")).command == (
        "pipediag analyze -o out -m package.train"
    )
    assert next_command(session, Path("reports/package.train")).command == (
        "pipediag analyze -m package.train"
    )


def test_a_report_is_where_the_analysis_puts_it_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "application").mkdir()
    monkeypatch.chdir(tmp_path / "application")
    module = Script(path="package.train", args=[], module=True, outcome="stopped")
    here = Script(path=".", args=[], outcome="stopped")
    for script, directory in ((module, "reports/package.train"), (here, "reports/application")):
        session = factories.make_compute_bound_session(script=script)
        assert next_command(session, None).command == f"pipediag check {directory}"
        analysed = default_directory(script.path, module=script.module)
        failing = factories.make_session(script=script)
        assert "-o" not in next_command(failing, analysed).command.split()


def test_a_clean_run_leads_to_the_gate() -> None:
    session = factories.make_compute_bound_session()

    assert next_command(session, Path("reports/train")).command == "pipediag check reports/train"
    assert next_command(session, None).command == "pipediag check reports/train"


def test_a_step_that_pytorch_computes_leads_to_no_longer_run() -> None:
    session = factories.make_compute_bound_session(
        verdict=factories.make_verdict(bottleneck="inconclusive", severity="unknown"),
        environment=records.make_environment(keras_backend="torch"),
        breakdown=records.make_breakdown(input_wait=1.0),
    )

    assert next_command(session, None) is None


@pytest.mark.parametrize(("seen", "asked"), [(10, 200), (300, 1200)])
def test_an_inconclusive_run_leads_to_a_longer_one(seen: int, asked: int) -> None:
    session = factories.make_session(
        verdict=factories.make_verdict(bottleneck="inconclusive"),
        steps=records.make_steps(count=seen),
    )

    assert next_command(session, None).command == f"pipediag analyze --steps {asked} train.py"


def test_where_no_step_was_measured_the_same_command_would_not_help() -> None:
    assert next_command(sessions.nothing_measured(), None) is None


def test_what_failed_is_not_asked_to_fail_once_more() -> None:
    raised = Script(path="train.py", args=[], outcome="raised", status=1)
    session = factories.make_session(
        verdict=factories.make_verdict(bottleneck="inconclusive"), script=raised, breakdown=None
    )

    assert next_command(session, None) is None


def test_a_script_that_was_over_too_soon_leads_to_a_second_run() -> None:
    script = Script(path="train.py", args=[], outcome="finished", status=0)
    finding = factories.make_finding(edit=make_edit("map"))
    session = factories.make_session(script=script, findings=[finding])

    assert next_command(session, None) == NextCommand(
        "To try it in the loop", "pipediag analyze --rerun train.py"
    )


def test_confirmed_edits_lead_to_their_patch() -> None:
    written = factories.make_session(patch=Patch(edits=["map"], diff="+x\n"))
    by_hand = factories.make_session(patch=Patch())

    assert next_command(written, Path("my out")).command == "pipediag fix 'my out'"
    assert next_command(by_hand, None).purpose == "After the edit"


def test_what_a_trial_left_open_leads_to_more_time_not_to_an_edit() -> None:
    undecided = factories.make_finding(trial=trial_sessions.UNDECIDED)
    session = factories.make_session(
        findings=[undecided], trials=trial_sessions.make_run(budget_s=60.0)
    )

    assert next_command(session, None) == NextCommand(
        "To decide what is open", "pipediag analyze --budget 180 train.py"
    )


def test_epochs_that_take_too_long_to_try_lead_to_the_time_that_is_enough() -> None:
    edit = make_edit("cache", whole_epoch=True)
    waits = factories.make_finding(edit=edit)
    run = trial_sessions.make_run(budget_s=60.0, epochs_need_s=241.0)
    session = factories.make_session(findings=[waits], trials=run)

    assert next_command(session, None) == NextCommand(
        "To try it in whole epochs", "pipediag analyze --budget 241 train.py"
    )
    steps = factories.make_finding(edit=make_edit("map"))
    other = session.model_copy(update={"findings": [steps]})
    assert next_command(other, None).purpose == "After the edit"
    tried = waits.model_copy(update={"trial": trial_sessions.UNDECIDED})
    undecided = session.model_copy(update={"findings": [tried]})
    assert next_command(undecided, None).command == "pipediag analyze --budget 241 train.py"


def test_an_analysis_that_a_program_called_is_made_by_no_command() -> None:
    script = Script(path="notebook.py", args=[], call="analyze", outcome="stopped")
    session = factories.make_session(script=script)

    assert next_command(session, None) is None
    assert next_command(session, Path("saved")) is None
    patched = session.model_copy(update={"patch": Patch(diff="-a\n+b\n", files=[], left_out=[])})
    assert next_command(patched, None) is None
    assert next_command(patched, Path("saved")) == NextCommand(
        "The change as a patch", "pipediag fix saved"
    )
