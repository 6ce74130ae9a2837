"""`pipediag compare` of two directories, with a stand-in for `analyze` that writes sessions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipediag.cli import fresh_runs
from pipediag.cli.compare import command
from pipediag.errors import PipediagError
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests.comparison.sides import run_of

Measured = Callable[[str, int], Session | int]
"""From a version and how often it has been run to its session, or a status without one."""


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two versions of the code, in the working directory."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(f"print('{name}')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def measuring(
    versions: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Measured], list[list[str]]]:
    """Puts a runner in place; the list is of what it was called with."""
    del versions

    def put(measured: Measured) -> list[list[str]]:
        calls: list[list[str]] = []
        made: Counter[str] = Counter()

        def analyze(arguments: list[str], *, directory: Path, stdout: int) -> int:
            assert stdout == 2
            calls.append([str(directory), *arguments])
            made[directory.name] += 1
            session = measured(directory.name, made[directory.name])
            if isinstance(session, int):
                return session
            output = Path(arguments[arguments.index("--output") + 1])
            output.mkdir(parents=True)
            (output / "session.json").write_text(session.model_dump_json(), encoding="utf-8")
            return 0 if session.steps is not None else 3

        monkeypatch.setattr(fresh_runs, "analyze_afresh", analyze)
        return calls

    return put


def compare(*arguments: Any) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def steps(old: float, new: float) -> Measured:
    return lambda name, _count: run_of({"old": old, "new": new}[name])


def swinging(_name: str, count: int) -> Session:
    return run_of(10.0 if count % 2 else 30.0)


def cut(outcome: str) -> Session:
    return run_of(script=Script(path="train.py", args=[], outcome=outcome))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("measured", "status"),
    [
        (steps(10.0, 10.0), 0),
        (steps(10.0, 13.0), 1),
        (steps(13.0, 10.0), 0),
        (swinging, 4),
        (lambda _name, _count: run_of(steps=None), 3),
        (lambda name, _count: run_of() if name == "old" else 2, 2),
    ],
)
def test_the_exit_status_is_that_of_the_contract(
    measuring: Any, measured: Measured, status: int
) -> None:
    measuring(measured)
    result = compare("old", "new", "--", "train.py")
    assert result.exit_code == status
    assert ("Comparison: " in result.stdout) is (status in (0, 1, 4))


def test_the_configuration_of_the_gate_holds(versions: Path, measuring: Any) -> None:
    table = "[tool.pipediag]\nmax-slowdown-percent = 50\nallow-inconclusive = true\n"
    (versions / "pyproject.toml").write_text(table, encoding="utf-8")
    measuring(steps(10.0, 13.0))
    assert compare("-o", "1", "old", "new", "--", "train.py").exit_code == 0
    measuring(swinging)
    assert compare("-o", "2", "old", "new", "--", "train.py").exit_code == 0


def test_each_run_is_made_in_its_version_in_turn_and_without_trials(
    versions: Path, measuring: Any
) -> None:
    calls = measuring(steps(10.0, 13.0))
    compare("--timeout", 9, "--rounds", 3, "-m", "old", "new", "--", "pkg.train", "-q", "--", "x")

    assert [directory for directory, *_ in calls] == ["old", "new", "new", "old", "old", "new"]
    into = versions / "reports" / "compare" / "base" / "run-1"
    assert calls[0][1:] == [
        *("--output", str(into), "--quiet", "--budget", "0", "--timeout", "9.0", "-m"),
        *("pkg.train", "--", "-q", "--", "x"),
    ]


def test_what_was_kept_is_read_again_and_not_written_over(versions: Path, measuring: Any) -> None:
    del versions
    measuring(steps(10.0, 13.0))
    result = compare("-o", "kept", "--format", "json", "old", "new", "--", "train.py")
    again = compare("kept/base", "kept/head", "--format", "json")

    assert json.loads(result.stdout)["outcome"] == "regressed"
    assert json.loads(again.stdout)["outcome"] == "regressed"
    with pytest.raises(PipediagError, match="kept/base is there already"):
        compare("-o", "kept", "old", "new", "--", "train.py")


@pytest.mark.parametrize("outcome", ["interrupted", "killed"])
def test_who_ends_a_run_ends_all_and_what_was_measured_is_compared(
    versions: Path, measuring: Any, outcome: str
) -> None:
    def measured(name: str, count: int) -> Session | int:
        return cut(outcome) if count == 4 else swinging(name, count)

    measuring(measured)
    result = compare("old", "new", "--", "train.py")

    assert "from 3 and 3 runs" in result.stdout
    assert (versions / "reports" / "compare" / "unfinished" / "session.json").exists()


def test_an_interruption_before_there_is_a_session_is_one_too(measuring: Any) -> None:
    measuring(lambda _name, _count: 130)
    assert compare("old", "new", "--", "train.py").exit_code == 130


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("old", "absent", "--", "train.py"), "absent is no directory"),
        (("old", "new", "--", "test.py"), "old holds no test.py"),
    ],
)
def test_what_cannot_be_run_is_one_line_before_anything_is(
    measuring: Any, arguments: tuple[str, ...], said: str
) -> None:
    calls = measuring(steps(10.0, 10.0))
    with pytest.raises(PipediagError, match=said):
        compare(*arguments)
    assert not calls
