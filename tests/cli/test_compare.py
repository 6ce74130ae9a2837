"""`pipediag compare`, of sessions and of two directories with a stand-in for `analyze`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result

import pipediag.cli.compare
from pipediag.cli.compare import command
from pipediag.errors import ExitStatus, PipediagError
from pipediag.runner import native_runs
from pipediag.session.model import Script, Session
from pipediag.session.worker import Worker
from tests.comparison.sides import run_of
from tests.factories import make_loop
from tests.probe import CHECKOUT
from tests.records import make_environment


def write(folder: Path, *sessions: Session) -> Path:
    """One session in the folder, or each of several in a folder of its own."""
    for at, session in enumerate(sessions, 1):
        inner = folder if len(sessions) == 1 else folder / f"run-{at}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / "session.json").write_text(session.model_dump_json(), encoding="utf-8")
    return folder


def compare(*arguments: Any) -> Result:
    given = [str(argument) for argument in arguments]
    return CliRunner().invoke(command, given, catch_exceptions=False)


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


def test_another_machine_is_refused(tmp_path: Path) -> None:
    other = make_environment(cpu_model="Other CPU", fingerprint="fedc")
    both = write(tmp_path / "a", run_of()), write(tmp_path / "b", run_of(environment=other))
    with pytest.raises(PipediagError, match=r"machines \(Example CPU: .*; Other CPU: "):
        compare(*both)


def test_a_side_is_of_one_script_and_of_one_worker(tmp_path: Path) -> None:
    """Runs of one script may have other arguments, and may be of other checkouts."""
    script = run_of().script
    runs = [
        run_of(script=script.but(path=f"/{place}/train.py", directory=place, args=[place]))
        for place in ("one", "two")
    ]
    base = write(tmp_path / "base", *runs)
    assert compare(base, write(tmp_path / "same", *runs)).exit_code == 0
    two = write(tmp_path / "two", runs[0], run_of(script=script.but(path="eval.py")))
    workers = [Worker(f"rank-{rank}", rank, 2, "Slurm") for rank in range(2)]
    job = write(
        tmp_path / "job", *(run_of(environment=make_environment(worker=one)) for one in workers)
    )
    for several in (two, job):
        with pytest.raises(PipediagError, match="Nothing was compared"):
            compare(base, several)


def test_the_configuration_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = "[tool.pipediag]\nmax-slowdown-percent = 50\nallow-inconclusive = true\n"
    Path("pyproject.toml").write_text(table, encoding="utf-8")
    both = write(tmp_path / "a", run_of(10.0)), write(tmp_path / "b", run_of(14.0))
    assert compare(*both).exit_code == 0
    assert compare(both[0], write(tmp_path / "c", run_of(steps=None))).exit_code == 0


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

        def analyze(arguments: list[str], directory: Path) -> int:
            calls.append([str(directory), *arguments])
            made[directory.name] += 1
            session = measured(directory.name, made[directory.name])
            if isinstance(session, int):
                return session
            output = Path(arguments[arguments.index("--output") + 1])
            output.mkdir(parents=True)
            (output / "session.json").write_text(session.model_dump_json(), encoding="utf-8")
            return 0 if session.steps is not None else 3

        monkeypatch.setattr(pipediag.cli.compare, "analyze_afresh", analyze)
        monkeypatch.setattr(
            native_runs,
            "compared",
            lambda *_, **_tell: [native_runs.Said("Batches: they are equal.")],
        )
        return calls

    return put


def steps(old: float, new: float) -> Measured:
    return lambda name, _count: run_of({"old": old, "new": new}[name])


def swinging(_name: str, count: int) -> Session:
    return run_of(10.0 if count % 2 else 30.0)


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
def test_the_exit_status_of_two_directories(
    measuring: Any, measured: Measured, status: int
) -> None:
    measuring(measured)
    result = compare("old", "new", "--", "train.py")
    assert result.exit_code == status
    assert ("Gate: " in result.stdout) is (status in (0, 1, 4))


def test_each_run_is_made_in_its_version_alternately_and_without_trials(
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

    assert json.loads(result.stdout)["status"] == "failed"
    assert "Batches: they are equal." in json.loads(result.stdout)["notes"]
    assert json.loads(again.stdout)["status"] == "failed"
    with pytest.raises(PipediagError, match="kept/base is there already"):
        compare("-o", "kept", "old", "new", "--", "train.py")


@pytest.mark.parametrize("outcome", ["interrupted", "killed"])
def test_who_ends_a_run_ends_all_and_what_was_measured_is_kept(
    versions: Path, measuring: Any, outcome: str
) -> None:
    def measured(name: str, count: int) -> Session | int:
        script = Script(path="train.py", args=[], outcome=outcome)  # type: ignore[arg-type]
        return run_of(script=script) if count == 4 else swinging(name, count)

    measuring(measured)
    result = compare("old", "new", "--", "train.py")

    assert result.exit_code == 130
    assert result.stdout == ""
    kept = compare("reports/compare/base", "reports/compare/head")
    assert "from" in kept.stdout
    assert (versions / "reports" / "compare" / "unfinished" / "session.json").exists()


def test_sessions_made_before_a_run_that_fails_are_named(measuring: Any) -> None:
    measuring(lambda _name, count: 2 if count == 3 else run_of())
    result = compare("old", "new", "--", "train.py")

    assert result.exit_code == 2
    assert "nothing is compared" in result.stderr
    assert "are kept in reports/compare" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("old", "absent", "--", "train.py"), "absent is no directory"),
        (("old", "new", "--", "test.py"), "old holds no test.py"),
        (("old", "new", "--", __file__), "an absolute one is the same file for both"),
        (("old", "new", "--", "link.py"), "same file"),
    ],
)
def test_what_cannot_be_run_is_one_line_before_anything_is(
    measuring: Any, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    calls = measuring(steps(10.0, 10.0))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    Path("both.py").touch()
    for side in ("old", "new"):
        Path(side, "link.py").symlink_to("../both.py")
    with pytest.raises(PipediagError, match=said):
        compare(*arguments)
    assert not calls


@pytest.mark.parametrize(("path", "runs"), [(".", True), ("/lib:src", True), ("/lib", False)])
def test_one_file_may_run_both_versions_where_it_imports_those_of_its_directory(
    measuring: Any, monkeypatch: pytest.MonkeyPatch, path: str, runs: bool
) -> None:
    calls = measuring(steps(10.0, 10.0))
    Path("both.py").touch()
    monkeypatch.setenv("PYTHONPATH", path)
    with suppress(PipediagError):
        compare("old", "new", "--", "../both.py")
    assert bool(calls) is runs


ALLOWED = ("--allow-inconclusive", "-o", "allowed")


@pytest.mark.parametrize(
    ("file", "mixed"),
    [
        ("new/pkg/data.py", True),
        ("new/.venv/lib/site-packages/library/data.py", False),
        ("old/pkg/data.py", False),
        ("elsewhere/data.py", False),
    ],
)
def test_a_version_that_ran_a_file_of_the_other_one_is_not_compared(
    versions: Path, measuring: Any, file: str, mixed: bool
) -> None:
    """As where the package is installed from one of both directories."""

    def measured(name: str, _count: int) -> Session:
        return run_of(loops=[make_loop(file=str(versions / file))] if name == "old" else [])

    measuring(measured)
    if not mixed:
        assert compare("old", "new", "--", "train.py").exit_code == 0
        return
    for options, status in (((), ExitStatus.INCONCLUSIVE), (ALLOWED, ExitStatus.DONE)):
        with pytest.raises(PipediagError, match=re.escape(file)) as raised:
            compare(*options, "old", "new", "--", "train.py")
        assert raised.value.status == status


def test_seeded_runs_come_first_as_they_end_early(
    measuring: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = measuring(steps(10.0, 10.0))
    before: list[int] = []

    def compared(*_: object, **_tell: object) -> list[str]:
        before.append(len(calls))
        return []

    monkeypatch.setattr(native_runs, "compared", compared)
    compare("old", "new", "--", "train.py")
    assert calls
    assert before == [0]


NOTING = """
import os, pathlib, sys, time
found = sys.path[0] == str(pathlib.Path(__file__).parent)
print(found, os.getpid(), file=sys.stderr, flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(3)
"""
IMPOSTOR = "raise SystemExit('this is not pipediag')\n"


@pytest.fixture
def started(tmp_path: Path) -> Callable[[str], subprocess.Popen[str]]:
    """Compares a directory with itself, which has modules called as pipediag and its own are."""
    (tmp_path / "train.py").write_text(NOTING)
    (tmp_path / "click.py").write_text(IMPOSTOR)
    (tmp_path / "pipediag").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (tmp_path / "pipediag" / name).write_text(IMPOSTOR)
    main = str(CHECKOUT / "pipediag" / "__main__.py")
    arguments = ["compare", "--no-results", ".", ".", "--", "train.py"]

    def start(sleeps_s: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, main, *arguments, sleeps_s],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_no_other_of_that_name_is_started_in_place_of_it(
    started: Callable[[str], subprocess.Popen[str]],
) -> None:
    _, said = started("0").communicate(timeout=120)
    assert "not pipediag" not in said
    assert "\nTrue " in said
    assert "a run failed" in said


def test_who_ends_it_ends_the_script(started: Callable[[str], subprocess.Popen[str]]) -> None:
    """A CI that gives up on a job may signal only the process that it started."""
    with started("300") as process:
        noted = next(line for line in process.stderr if line.startswith("True "))
        script = psutil.Process(int(noted.split()[1]))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)

    assert process.returncode != 0
    assert not script.is_running()
