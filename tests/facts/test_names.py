"""How files and runs are named, how a script ended, and what a second run could try."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipediag.facts.names import default_directory, in_checkout
from pipediag.facts.script import edits_for_second_run, failed_by_itself
from pipediag.session.model import Script, Session
from pipediag.session.trials import NO_BUDGET
from pipediag.vocabulary import ScriptOutcome
from tests.factories import make_finding, make_loop, make_session
from tests.records import SCRIPT
from tests.trials.bench import make_edit


@pytest.mark.parametrize(
    ("script", "module", "expected"),
    [("train.py", False, "reports/train"), ("package.train", True, "reports/package.train")],
)
def test_it_goes_by_the_script(script: str, module: bool, expected: str) -> None:
    assert default_directory(script, module=module) == Path(expected)


@pytest.mark.parametrize("script", ["nul\0.py", "loop"])
def test_a_name_that_is_no_path_here_goes_by_its_stem(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session from elsewhere may name anything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    assert default_directory(script, module=False) == Path("reports") / Path(script).stem


@pytest.fixture(autouse=True)
def of_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a project in a directory of its own, in which the gate is called."""
    project = tmp_path / "repository" / "models" / "ranking"
    project.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    monkeypatch.chdir(project)
    return tmp_path / "repository"


def test_a_file_is_named_from_the_root_of_the_repository(repository: Path) -> None:
    assert in_checkout(str(repository / "models/ranking/train.py")) == "models/ranking/train.py"
    assert in_checkout(str(repository / "common/data.py")) == "common/data.py"


@pytest.mark.parametrize("name", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_without_git_the_service_says_where_the_root_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path / "sub")
    assert in_checkout("train.py") == "sub/train.py"


def ended(**overrides: Any) -> Script:
    return Script(**{"path": SCRIPT, "args": [], "outcome": "finished", "status": 0, **overrides})


@pytest.mark.parametrize(
    ("outcome", "status", "failed"),
    [
        *((outcome, 1, True) for outcome in ("raised", "killed", "exited")),
        *(("interrupted", 130, False), ("timed-out", None, False), ("exited", 0, False)),
    ],
)
def test_a_script_that_nobody_else_ended_failed_by_itself(
    outcome: ScriptOutcome, status: int | None, failed: bool
) -> None:
    script = ended(outcome=outcome, status=status)
    found = failed_by_itself(make_session(script=script, steps=None))
    assert (found is not None) == failed


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
        {"loops": [make_loop(replicas=2)]},
        {"loops": [make_loop(kind="tf_function", from_python=True)]},
        {"loops": []},
        {"trials_missing": NO_BUDGET},
        {"findings": [make_finding()]},
        {"findings": [make_finding(edit=replace(make_edit("map"), loop_id="loop_1"))]},
        {"findings": [make_finding(edit=make_edit("map"), status="pass")]},
        {"findings": [make_finding(edit=make_edit("map"), effect_on_results="not safe here")]},
    ],
)
def test_where_it_would_show_nothing_it_is_not_made(changed: dict[str, Any]) -> None:
    assert not edits_for_second_run(over(**changed))
