"""Output that leads nowhere: the script fares as natively, and the status says what it says."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipediag.errors import ExitStatus
from pipediag.session.store import load_session
from tests.probe import LIMIT_S, environment

SCRIPT = """
import os, sys
kept = open("kept.txt", "w")
print("printed", flush=True)
if sys.stderr:
    print("an error", file=sys.stderr)
kept.write(f"{kept.fileno()} {sys.stdout is None} {sys.stderr is None}")
"""
PIPEDIAG = [sys.executable, "-m", "pipediag"]
ANALYZE = [*PIPEDIAG, "analyze", "--force", "-o", "out"]


def _shell(command: list[str], redirections: str, directory: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shlex.join(command)} {redirections}"],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("redirections", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_closed_for_the_script(redirections: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    kept = tmp_path / "kept.txt"

    _shell([sys.executable, "train.py"], redirections, tmp_path)
    natively = kept.read_text()
    kept.unlink()
    status, out, err = _shell([*ANALYZE, "train.py"], redirections, tmp_path)

    assert (status, kept.read_text()) == (ExitStatus.DONE, natively)
    assert "Traceback" not in out + err
    assert load_session(tmp_path / "out").script.outcome == "finished"


def test_a_reader_that_leaves_changes_no_status(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")

    status, _, _ = _shell([*ANALYZE, "train.py"], "2>&1 | true", tmp_path)

    assert status == ExitStatus.DONE
    assert load_session(tmp_path / "out").script.outcome == "finished"


@pytest.mark.parametrize("arguments", [["analyze", "--json", "-o", "out", "train.py"], ["explain"]])
def test_a_document_that_cannot_be_written_is_told(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")

    status, _, err = _shell([*PIPEDIAG, *arguments], ">/dev/full", tmp_path)

    assert status == ExitStatus.USAGE
    assert err.splitlines()[-1].startswith("pipediag: standard output cannot be written: No space")
    assert "Traceback" not in err


def test_words_for_people_may_be_lost(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")

    assert _shell([*ANALYZE, "train.py"], "2>/dev/full", tmp_path)[0] == ExitStatus.DONE


def test_interrupts_in_a_row_leave_no_traceback(tmp_path: Path) -> None:
    text = "import time\nprint('ready', flush=True)\ntime.sleep(60)"
    (tmp_path / "train.py").write_text(text)
    process = subprocess.Popen(
        [*ANALYZE, "train.py"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background has them, and so this, ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)

    _, err = process.communicate(timeout=LIMIT_S)
    assert str(Path(__file__).parents[2] / "pipediag") not in err
    assert process.returncode in (ExitStatus.SCRIPT_FAILED, 130)
