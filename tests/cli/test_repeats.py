"""Runs in fresh processes: `analyze --repeats` and `compare`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pipediag.errors import ExitStatus
from tests.probe import CHECKOUT, LIMIT_S, Behaviour, run

COUNTING = """
import os, pathlib, sys
log = pathlib.Path("log")
log.write_text((log.read_text() if log.exists() else "") + f"{os.getpid()} {sys.argv[1:]}\\n")
"""


def analyze(directory: Path, *arguments: str) -> Behaviour:
    return run([sys.executable, "-m", "pipediag", "analyze", *arguments], directory)


def test_each_run_is_a_fresh_process_with_a_session_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(COUNTING)
    seen = analyze(
        tmp_path, "--repeats", "2", "-q", "--budget", "0", "-o", "out", "train.py", "--", "-q"
    )

    assert (seen.status, seen.stderr) == (0, "")
    processes, arguments = zip(
        *(line.split(" ", 1) for line in (tmp_path / "log").read_text().splitlines()), strict=True
    )
    assert len(set(processes)) == 2
    assert arguments == ("['-q']", "['-q']")
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["run-1", "run-2"]
    for path in (tmp_path / "out").glob("*/session.json"):
        assert json.loads(path.read_text())["script"]["args"] == ["-q"]

    again = analyze(tmp_path, "--repeats", "2", "-o", "out", "train.py")
    assert again.status == ExitStatus.USAGE
    assert again.stderr.startswith("pipediag: out holds sessions of an earlier call")
    assert len((tmp_path / "log").read_text().splitlines()) == 2

    over = ("--force", "--repeats", "2", "--budget", "0", "--fail-on", "error")
    (tmp_path / "out" / "run-3").mkdir()
    (tmp_path / "out" / "run-3" / "session.json").write_text("{}")
    forced = analyze(tmp_path, *over, "-o", "out", "train.py", "x")
    # Nothing trains, so that nothing can be judged.
    assert forced.status == ExitStatus.INCONCLUSIVE
    assert "pipediag: 2 runs together; medians: run " in forced.stderr
    assert "`pipediag check out` judges them together" in forced.stderr
    assert forced.stderr.count("Gate: ") == 1
    assert "train.py (2 runs): inconclusive" in forced.stderr
    args = [
        json.loads(path.read_text())["script"]["args"]
        for path in (tmp_path / "out").glob("*/session.json")
    ]
    assert args == [["x"], ["x"]]


def test_a_run_that_fails_ends_it_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(COUNTING + "raise ValueError('no data')\n")
    seen = analyze(tmp_path, "--repeats", "3", "--budget", "0", "-o", "out", "train.py")

    assert seen.status == ExitStatus.SCRIPT_FAILED
    assert len((tmp_path / "log").read_text().splitlines()) == 1
    assert "pipediag: run 1 of 3, into out/run-1" in seen.stderr


WAITING = """
import os, time
print("ready", os.getpid(), flush=True)
time.sleep(300)
"""


def test_who_ends_the_repeats_ends_the_script(tmp_path: Path) -> None:
    """A CI that gives up on a job may signal only the process that it started."""
    (tmp_path / "train.py").write_text(WAITING)
    command = ["analyze", "-q", "--repeats", "3", "--budget", "0", "-o", "out", "train.py"]
    with subprocess.Popen(
        [sys.executable, "-m", "pipediag", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        script = psutil.Process(int(process.stdout.readline().split()[1]))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)

    assert process.returncode != 0
    assert not script.is_running()
    assert not (tmp_path / "out" / "run-2").exists()


MAIN = CHECKOUT / "pipediag" / "__main__.py"


NOTING = """
import pathlib, sys
with pathlib.Path("log").open("a") as log:
    print(sys.path[0] == str(pathlib.Path(__file__).parent), sys.flags.optimize, file=log)
sys.exit(len(sys.argv) - 1)
"""


IMPOSTOR = "raise SystemExit('this is not pipediag')\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A repository that has something called as pipediag is, and as what pipediag imports."""
    (tmp_path / "train.py").write_text(NOTING)
    (tmp_path / "click.py").write_text(IMPOSTOR)
    (tmp_path / "pipediag").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (tmp_path / "pipediag" / name).write_text(IMPOSTOR)
    return tmp_path


def pipediag(here: Path, *arguments: str, flags: tuple[str, ...] = ()) -> str:
    """Starts pipediag as its own file, and gives what it says on standard error."""
    return subprocess.run(
        [sys.executable, *flags, str(MAIN), *arguments],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(here)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    ).stderr


def test_no_other_of_that_name_is_started_in_place_of_it(here: Path) -> None:
    said = pipediag(here, "compare", "--no-results", ".", ".", "--", "train.py", "fail")
    assert "not pipediag" not in said
    assert "a run failed" in said
    assert (here / "log").read_text().splitlines() == ["True 0"]
