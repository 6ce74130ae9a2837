"""Runs a script in the child process, or a program, and holds what it wrote down and printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from pipediag.runner.child_process import CHILD
from pipediag.session.messages import RunSettings
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedOperation, RecordedWindow, Recording
from pipediag.session.store import read_recording
from pipediag.vocabulary import WindowKind

CHECKOUT = Path(__file__).parents[2]
LIMIT_S = 120
SHORT_WINDOWS = {"steps": 20, "warmup": 5, "profile_steps": 5}


@dataclass(frozen=True)
class Captured:
    """A finished run: the recording and what the world saw of the script."""

    script: Path
    directory: Path
    recording: Recording
    stdout: str
    stderr: str
    status: int

    @property
    def results(self) -> dict[str, Any]:
        """What the script prints behind `RESULTS`, as JSON."""
        printed = [line for line in self.stdout.splitlines() if line.startswith("RESULTS ")]
        assert len(printed) == 1, self.stderr
        found: dict[str, Any] = json.loads(printed[0].removeprefix("RESULTS "))
        return found

    def line(self, mark: str) -> int:
        """Number of the one line of the script that ends in `# mark`."""
        lines = self.script.read_text(encoding="utf-8").splitlines()
        found = [n for n, text in enumerate(lines, 1) if text.endswith(f"# {mark}")]
        assert len(found) == 1, f"{mark!r} marks the lines {found}"
        return found[0]

    def loop(self, mark: str) -> RecordedLoop:
        (loop,) = self.loops(mark)
        return loop

    def loops(self, mark: str) -> list[RecordedLoop]:
        line = self.line(mark)
        return [loop for loop in self.recording.loops if loop.line == line]

    def operation(self, mark: str, kind: str | None = None) -> RecordedOperation:
        """The one tf.data call, of that kind, at the marked line."""
        at_line = [o for o in self.recording.operations if o.line == self.line(mark)]
        (operation,) = [o for o in at_line if kind in (None, o.kind)]
        return operation

    def windows(self, loop: RecordedLoop) -> list[RecordedWindow]:
        return [window for window in self.recording.windows if window.loop_id == loop.id]

    def kinds(self, loop: RecordedLoop) -> set[WindowKind]:
        return {window.kind for window in self.windows(loop) if window.complete}

    def baseline(self, loop: RecordedLoop) -> RecordedWindow:
        (window,) = [w for w in self.windows(loop) if w.kind == "baseline"]
        return window


def environment(**variables: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    return {**os.environ, **quiet, "PYTHONPATH": path, **variables}


def write_script(directory: Path, text: str) -> Path:
    script = directory / "script.py"
    script.write_text(dedent(text), encoding="utf-8")
    return script


def natively(script: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return _run([sys.executable, str(script)], script.parent, variables)


def captured(script: Path, variables: dict[str, str], **settings: Any) -> Captured:
    directory = script.parent
    asked = RunSettings(
        script=str(script),
        args=(),
        module=False,
        capture_directory=str(directory / "capture"),
        **{**SHORT_WINDOWS, **settings},
    )
    asked.write(directory / "settings.json")
    command = [sys.executable, str(CHILD), str(directory / "settings.json")]
    done = _run(command, directory, variables)
    recording = read_recording(asked.recording_path)
    assert recording is not None, done.stderr
    return Captured(script, directory, recording, done.stdout, done.stderr, done.returncode)


def _run(
    command: list[str], directory: Path, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def told_by(program: str, **environment: str) -> dict[str, dict[str, Any]]:
    """What each line that it prints as JSON says, by its `name`; other lines are a framework's."""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return {line.pop("name"): line for line in lines}
