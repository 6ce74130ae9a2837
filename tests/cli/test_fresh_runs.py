"""Runs in fresh processes: it is pipediag that is started, and the script's own interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.probe import CHECKOUT, LIMIT_S

MAIN = CHECKOUT / "pipediag" / "__main__.py"
NOTING = """
import pathlib, sys
with pathlib.Path("log").open("a") as log:
    print(sys.path[0] == str(pathlib.Path(__file__).parent), sys.flags.optimize, file=log)
sys.exit(len(sys.argv) - 1)
"""
IMPOSTOR = "raise SystemExit('this is not pipediag')\n"


@pytest.fixture(params=["package", "module"])
def here(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A repository that has something called as pipediag is, and as what pipediag imports."""
    (tmp_path / "train.py").write_text(NOTING)
    (tmp_path / "click.py").write_text(IMPOSTOR)
    if request.param == "module":
        (tmp_path / "pipediag.py").write_text(IMPOSTOR)
        return tmp_path
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
    said = pipediag(here, "compare", ".", ".", "--", "train.py", "fail")
    assert "not pipediag" not in said
    assert "a run failed" in said
    assert (here / "log").read_text().splitlines() == ["True 0"]


def test_repeats_are_runs_of_pipediag_by_the_interpreter_as_it_was_started(here: Path) -> None:
    options = ("--repeats", "2", "-q", "--budget", "0", "-o", "out")
    said = pipediag(here, "analyze", *options, "train.py", flags=("-O",))
    assert said == ""
    assert (here / "log").read_text().splitlines() == ["True 1"] * 2
    assert len(list((here / "out").glob("run-*/session.json"))) == 2
