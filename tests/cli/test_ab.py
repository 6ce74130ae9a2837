"""`pipediag ab`, with a runner in place of `analyze` that writes sessions."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result

from pipediag.cli import ab, ab_runs, compare
from pipediag.errors import PipediagError
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests.comparison.sides import run_of
from tests.probe import environment

Measured = Callable[[str, int], Session | int]
"""From a version and how often it has been run to its session, or a status without one."""


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two versions of a repository, in the working directory."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(f"print('{name}')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Callable[[Measured], list[list[str]]]:
    """Puts a runner in place; the list is of what it was called with."""

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

        monkeypatch.setattr(ab_runs, "analyze_afresh", analyze)
        return calls

    return put


def call(*arguments: Any) -> Result:
    result = CliRunner().invoke(ab.command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def steps(old: float, new: float) -> Measured:
    return lambda name, _count: run_of({"old": old, "new": new}[name])


def swinging(_name: str, count: int) -> Session:
    return run_of(10.0 if count % 2 else 30.0)


@pytest.mark.parametrize(
    ("measured", "status", "said"),
    [
        (steps(10.0, 10.0), 0, "decided after 3 rounds"),
        (steps(10.0, 13.0), 1, "decided after 5 rounds"),
        (steps(13.0, 10.0), 0, "decided after 5 rounds"),
        (swinging, 4, "not decided after 6 rounds"),
        (lambda _name, _count: run_of(steps=None), 3, "a run failed after 0 rounds"),
        (lambda name, _count: run_of() if name == "old" else 2, 2, "a run failed"),
    ],
)
def test_the_exit_status_is_that_of_the_contract(
    versions: Path, measuring: Any, measured: Measured, status: int, said: str
) -> None:
    del versions
    measuring(measured)
    result = call("--rounds", 6, "--seed", 1, "old", "new", "--", "train.py")
    assert result.exit_code == status
    assert f"pipediag: {said}" in result.stderr
    assert ("Comparison: " in result.stdout) is (status in (0, 1, 4))


def test_undecided_can_be_allowed(versions: Path, measuring: Any) -> None:
    del versions
    measuring(swinging)
    arguments = ("--allow-inconclusive", "-q", "--rounds", 3, "old", "new", "--", "train.py")
    result = call(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")


def test_the_configuration_of_the_gate_holds(versions: Path, measuring: Any) -> None:
    table = "[tool.pipediag]\nmax-slowdown-percent = 50\nallow-inconclusive = true\n"
    (versions / "pyproject.toml").write_text(table, encoding="utf-8")
    measuring(steps(10.0, 13.0))
    assert call("--rounds", 3, "-q", "-o", "1", "old", "new", "--", "train.py").exit_code == 0
    measuring(swinging)
    assert call("--rounds", 3, "-q", "-o", "2", "old", "new", "--", "train.py").exit_code == 0


def test_each_run_is_made_in_its_version_without_trials(versions: Path, measuring: Any) -> None:
    calls = measuring(steps(10.0, 13.0))
    call("--timeout", 9, "--steps", 7, "-m", "old", "new", "--", "pkg.train", "-q", "--", "x")

    assert sorted(directory for directory, *_ in calls) == ["new"] * 5 + ["old"] * 5
    output = versions / "reports" / "ab" / "base" / "run-1"
    [first] = [one for one in calls if str(output) in one]
    assert first[0] == "old"
    assert first[first.index("--timeout") + 1] == "9.0"
    assert first[first.index("--quiet") :] == [
        *("--quiet", "--fold-log", "--budget", "0", "-m", "--steps", "7"),
        *("pkg.train", "--", "-q", "--", "x"),
    ]


def test_compare_reads_what_was_kept(versions: Path, measuring: Any) -> None:
    measuring(steps(10.0, 13.0))
    result = call("-o", "kept", "old", "new", "--", "train.py")
    assert result.stdout.startswith("new against old\n  REGRESSED     Step: 10 to 13 ms")
    assert "`pipediag compare kept/base kept/head` reads them again" in result.stderr

    again = CliRunner().invoke(compare.command, ["kept/base", "kept/head"])
    assert again.exit_code == 1
    assert "from 5 and 5 runs" in again.stdout
    kept = sorted(path.name for path in (versions / "kept" / "head").iterdir())
    assert kept == [f"run-{number}" for number in range(1, 6)]

    with pytest.raises(PipediagError, match="kept/base is there already"):
        call("-o", "kept", "old", "new", "--", "train.py")


@pytest.mark.parametrize("name", ["base", "head", "unfinished"])
def test_nothing_is_written_into_what_is_there(versions: Path, measuring: Any, name: str) -> None:
    calls = measuring(steps(10.0, 13.0))
    (versions / name).mkdir()
    with pytest.raises(PipediagError, match=f"^{name} is there already"):
        call("-o", ".", "old", "new", "--", "train.py")
    assert not calls


def test_standard_output_is_the_comparison_alone(versions: Path, measuring: Any) -> None:
    del versions
    measuring(steps(10.0, 13.0))
    result = call("--format", "json", "old", "new", "--", "train.py")
    assert json.loads(result.stdout)["outcome"] == "regressed"


def cut(outcome: str) -> Session:
    return run_of(script=Script(path="train.py", args=[], outcome=outcome))  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", ["interrupted", "killed"])
def test_who_ends_a_run_ends_all_and_keeps_what_was_measured(
    versions: Path, measuring: Any, outcome: str
) -> None:
    measuring(lambda name, count: cut(outcome) if count == 4 else swinging(name, count))
    result = call("old", "new", "--", "train.py")

    assert result.exit_code == 130
    assert "from 3 and 3 runs" in result.stdout
    kept = versions / "reports" / "ab"
    assert (kept / "unfinished" / "session.json").exists()
    for side in ("base", "head"):
        assert not (kept / side / "run-4").exists()


def test_an_interruption_before_there_is_a_session_is_one_too(
    versions: Path, measuring: Any
) -> None:
    del versions
    measuring(lambda _name, _count: 130)
    assert call("old", "new", "--", "train.py").exit_code == 130


@pytest.mark.parametrize(("options", "compared"), [([], False), (["--timeout", "5"], True)])
def test_a_run_that_the_limit_of_all_cuts_is_not_compared(
    versions: Path, measuring: Any, options: list[str], compared: bool
) -> None:
    measuring(lambda _name, _count: cut("timed-out"))
    result = call(*options, "--seconds", 100, "old", "new", "--", "train.py")
    assert (result.exit_code, "Comparison: " in result.stdout) == (
        (0, True) if compared else (4, False)
    )
    assert (versions / "reports" / "ab" / "unfinished").exists() is not compared


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("old", "absent", "--", "train.py"), "absent is no directory"),
        (("old", "new", "--", "test.py"), "old holds no test.py"),
        (("old", "new", "--rounds", "5", "--", "train.py"), "Options for pipediag come before"),
        (("old", "new", "--"), "SCRIPT is missing"),
    ],
)
def test_what_cannot_be_run_is_one_line_before_anything_is(
    versions: Path, measuring: Any, arguments: tuple[str, ...], said: str
) -> None:
    del versions
    calls = measuring(steps(10.0, 10.0))
    with pytest.raises(PipediagError, match=said):
        call(*arguments)
    assert not calls


WAITING = """
import os, time
print("ready", os.getpid(), flush=True)
time.sleep(300)
"""


def test_who_ends_it_ends_the_script(tmp_path: Path) -> None:
    """A CI that gives up on a job may signal only the process that it started."""
    (tmp_path / "train.py").write_text(WAITING)
    command = ["ab", "-q", "-o", "out", ".", ".", "--", "train.py"]
    with subprocess.Popen(
        [sys.executable, "-m", "pipediag", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        script = psutil.Process(int(process.stderr.readline().split()[1]))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)

    assert process.returncode not in (0, 1)
    assert not script.is_running()
    assert len(list((tmp_path / "out").glob("*/*/session.json"))) == 0
