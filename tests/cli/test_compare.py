from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipediag.cli.compare import FORMAT_NAMES, command
from pipediag.errors import PipediagError
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests.comparison.sides import run_of
from tests.records import make_environment


def write(folder: Path, *sessions: Session) -> Path:
    """One session in the folder, or each of several in a folder of its own."""
    for at, session in enumerate(sessions, 1):
        inner = folder if len(sessions) == 1 else folder / f"run-{at}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / "session.json").write_text(session.model_dump_json(), encoding="utf-8")
    return folder


def compare(*arguments: Any) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


CRASHED = Script(path="train.py", args=[], outcome="raised", status=1, detail="ValueError")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (run_of(10.0), 0),
        (run_of(20.0), 1),
        (run_of(script=CRASHED, steps=None, breakdown=None), 3),
        (run_of(steps=None), 4),
    ],
)
def test_the_exit_status_is_that_of_the_contract(
    tmp_path: Path, head: Session, status: int
) -> None:
    result = compare(write(tmp_path / "base", run_of()), write(tmp_path / "head", head))
    assert result.exit_code == status
    assert f"exit status {status}" in result.stdout


def test_undecided_can_be_allowed(tmp_path: Path) -> None:
    both = write(tmp_path / "base", run_of()), write(tmp_path / "head", run_of(steps=None))
    assert compare(*both, "--allow-inconclusive").exit_code == 0


def test_a_directory_of_runs_is_several_sessions(tmp_path: Path) -> None:
    base = write(tmp_path / "base", *map(run_of, (10.0, 10.1, 9.9)))
    head = write(tmp_path / "head", *map(run_of, (12.0, 12.1, 11.9)))
    result = compare(base, head)
    assert result.exit_code == 1
    assert "from 3 and 3 runs" in result.stdout


def test_another_machine_is_refused_but_for_shares(tmp_path: Path) -> None:
    other = make_environment(cpu_model="Other CPU", fingerprint="fedc")
    both = write(tmp_path / "a", run_of()), write(tmp_path / "b", run_of(environment=other))
    with pytest.raises(PipediagError, match="of different machines"):
        compare(*both)
    assert compare(*both, "--ratios-only").exit_code == 0


def test_the_floor_is_an_option(tmp_path: Path) -> None:
    both = write(tmp_path / "a", run_of(10.0)), write(tmp_path / "b", run_of(14.0))
    assert compare(*both).exit_code == 1
    assert compare(*both, "--max-slowdown", "50").exit_code == 0
    assert compare(*both, "--max-slowdown", "0").exit_code == 2


def test_the_configuration_holds_unless_the_command_line_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = "[tool.pipediag]\nmax-slowdown-percent = 50\nallow-inconclusive = true\n"
    Path("pyproject.toml").write_text(table, encoding="utf-8")
    both = write(tmp_path / "a", run_of(10.0)), write(tmp_path / "b", run_of(14.0))
    assert compare(*both).exit_code == 0
    assert compare(*both, "--max-slowdown", "20").exit_code == 1
    assert compare(both[0], write(tmp_path / "c", run_of(steps=None))).exit_code == 0


def test_every_form_can_be_named(tmp_path: Path) -> None:
    both = write(tmp_path / "a", run_of()), write(tmp_path / "b", run_of())
    assert set(FORMAT_NAMES) == {"json", "markdown", "text"}
    for name in FORMAT_NAMES:
        assert compare(*both, "--format", name).exit_code == 0
    assert json.loads(compare(*both, "--format", "json").stdout)["outcome"] == "same"


def test_a_missing_baseline_is_one_line(tmp_path: Path) -> None:
    head = write(tmp_path / "head", run_of())
    done = subprocess.run(
        [sys.executable, "-m", "pipediag", "compare", str(tmp_path / "absent"), str(head)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("pipediag: cannot read the session ")
