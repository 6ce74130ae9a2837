"""Runs the same script natively and under pipediag, so that a test can compare the two."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
LIMIT_S = 60


@dataclass(frozen=True)
class Behaviour:
    """What the world sees of a script."""

    stdout: str
    stderr: str
    status: int


@dataclass(frozen=True)
class Probe:
    """A working directory with the script's files, and how Python is told to run it."""

    directory: Path
    arguments: tuple[str, ...] = ("probe.py",)
    flags: tuple[str, ...] = ()
    stdin: str = ""

    def natively(self) -> Behaviour:
        return run([sys.executable, *self.flags, *self.arguments], self.directory, self.stdin)

    def under_pipediag(self, *options: str) -> Behaviour:
        own = ["-m", "pipediag", "analyze", "--quiet", "--output", str(self.directory / "../out")]
        command = [sys.executable, *self.flags, *own, *options, *self.arguments]
        return run(command, self.directory, self.stdin)


def environment() -> dict[str, str]:
    """The tests' environment, in which the checkout can be imported from any directory."""
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


MakeProbe = Callable[..., Probe]
"""Writes files, and gives the probe that runs them."""


def run(command: list[str], directory: Path, stdin: str = "") -> Behaviour:
    done = subprocess.run(
        command,
        cwd=directory,
        input=stdin,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return Behaviour(done.stdout, done.stderr, done.returncode)
