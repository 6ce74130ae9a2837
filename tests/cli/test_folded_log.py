"""What `pipediag analyze` shows of the framework's log; a plain script writes it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.probe import Behaviour, run

NOISE = "I0000 00:00:1795433364.718086   31060 port.cc:153] oneDNN custom operations are on."
MORE = "2026-11-23 10:00:00.123456: W tensorflow/core/framework/x.cc:12] something"
LOG = f"{NOISE}\n{MORE}\n"
WRITES = f"""
import os, sys
os.write(2, {LOG.encode()!r})
print("mine", file=sys.stderr)
print("out", flush=True)
"""


def _analyze(directory: Path, script: str, *options: str) -> Behaviour:
    (directory / "train.py").write_text(script)
    command = [sys.executable, "-m", "pipediag", "analyze", "--force", "-o", "out", *options]
    return run([*command, "train.py"], directory)


def test_it_is_folded_and_one_line_says_so(tmp_path: Path) -> None:
    done = _analyze(tmp_path, WRITES)

    assert done.stdout == "out\n"
    assert done.stderr.splitlines()[0] == "mine"
    assert done.stderr.splitlines()[-1] == (
        "pipediag: 2 lines of TensorFlow's log folded into out/framework.log; -v shows them."
    )
    assert NOISE not in done.stderr
    assert (tmp_path / "out/framework.log").read_text() == LOG


@pytest.mark.parametrize("option", ["-v", "-q"])
def test_it_stays_where_it_is(option: str, tmp_path: Path) -> None:
    done = _analyze(tmp_path, WRITES, option)

    assert done.stderr.startswith(f"{LOG}mine\n")
    assert "folded" not in done.stderr
    assert not (tmp_path / "out/framework.log").exists()


def test_nothing_is_said_of_nothing_and_an_earlier_log_goes(tmp_path: Path) -> None:
    _analyze(tmp_path, WRITES)

    done = _analyze(tmp_path, "print('mine')")

    assert "folded" not in done.stderr
    assert not (tmp_path / "out/framework.log").exists()


def test_a_failure_is_shown_with_the_last_of_it(tmp_path: Path) -> None:
    done = _analyze(tmp_path, f"{WRITES}\n1 / 0")

    assert done.status == 3
    head, _, tail = done.stderr.partition("pipediag: 2 lines of TensorFlow's log folded")
    assert NOISE not in head
    assert "ZeroDivisionError: division by zero\n" in head
    assert tail.splitlines()[1:-1] == [
        "pipediag: the end of TensorFlow's log, which was folded:",
        f"  {NOISE}",
        f"  {MORE}",
    ]


def test_the_scripts_own_status_and_both_its_streams_stay(tmp_path: Path) -> None:
    done = _analyze(tmp_path, f"{WRITES}\nsys.exit(7)", "--run-to-end", "--json")

    assert done.status == 7
    assert done.stdout.startswith("{")
    assert done.stderr.startswith("mine\nout\n")
