"""A script run natively and under pipediag, each in a folder of its own, to compare the facts."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipediag.session.model import Session
from tests.capture.captured import environment

LIMIT_S = 180
FACT = "FACT "
"""A line of a script's output that begins so must be the same natively and under pipediag."""


@dataclass(frozen=True)
class Run:
    """What is left of one run of a script."""

    directory: Path
    status: int
    stdout: str
    stderr: str
    report: Path

    @property
    def facts(self) -> list[str]:
        return [line for line in self.stdout.splitlines() if line.startswith(FACT)]

    @cached_property
    def files(self) -> dict[str, str]:
        """Digests of the files in the working folder, by relative path; bytecode is left out."""
        return {
            str(path.relative_to(self.directory)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }

    @cached_property
    def session(self) -> Session:
        text = (self.report / "session.json").read_text(encoding="utf-8")
        return Session.model_validate_json(text)


@dataclass(frozen=True)
class Case:
    """A script, the files beside it, and how it is called."""

    root: Path
    files: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def natively(self, *, again_in: Run | None = None) -> Run:
        """Run it without pipediag, in a new folder or in the one that another run has left."""
        return self._run("native", [sys.executable], again_in)

    def analysed(self, *options: str, again_in: Run | None = None) -> Run:
        """Run it under `pipediag analyze` with these options."""
        report = str(self.root / "report")
        own = ["-m", "pipediag", "analyze", "--force", "-o", report, *options]
        return self._run("analysed", [sys.executable, *own], again_in)

    def _run(self, name: str, command: list[str], again_in: Run | None) -> Run:
        directory = self.root / name if again_in is None else again_in.directory
        if again_in is None:
            directory.mkdir()
            for path, text in self.files.items():
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*command, "main.py", *self.arguments],
            cwd=directory,
            env=environment(**self.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=LIMIT_S,
            check=False,
        )
        return Run(directory, done.returncode, done.stdout, done.stderr, self.root / "report")
