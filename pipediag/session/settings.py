"""What the parent asks of the child: which script to run and how long to look at it.

And where the child leaves what it saw: the files of a capture directory, and the form of the one
that is no JSON.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pipediag.vocabulary import Call

SETTINGS_FILE = "settings.json"
RECORDING_FILE = "recording.json"
JOURNAL_FILE = "steps.journal"
TIMELINE_FILE = "timeline.jsonl"
TRACE_DIRECTORY = "trace"

JOURNAL_RECORD = struct.Struct("<6q")
"""A step: ordinals of loop and window, start, duration, wait (nanoseconds), batches."""

WantedLoop = int | Literal["longest"]
"""Which of several training loops: the one that begins at a line, or the longest."""


@dataclass(frozen=True)
class RunSettings:
    """Passed to the child as a JSON file. Paths are absolute: the script may change directory."""

    script: str
    """As typed: a path, or a module name where `module` is true."""
    args: tuple[str, ...]
    module: bool
    capture_directory: str
    """Where the child writes its recording, `steps.journal`, `timeline.jsonl` and `trace/`."""
    progress_fd: int | None = None
    """A pipe on which the child tells its phases, one JSON object a line."""
    steps: int | None = None
    """Baseline steps; None lets the window adapt to the step time."""
    warmup: int | None = None
    profile_steps: int | None = None
    command_fd: int | None = None
    """A pipe on which the parent asks for trials; None where none are to be made."""
    run_to_end: bool = False
    device_memory_bytes: int | None = None
    """Memory of the device, as the user gives it for the memory plan."""
    epochs: int | None = None
    """How many the script would train, as the user says, where it does not tell."""
    look_ahead_s: float = 5.0
    """A diagnosed loop that would end within this time is let run on, so later loops are seen."""
    budget_s: float = 0.0
    """What the user gives for a closer look and for trials."""
    loop: WantedLoop | None = None
    """Which training loop is wanted; of a line, no other one is measured, and none ends the run."""
    hold_loop: str | None = None
    """Of a script that is run a second time: the id of the one loop that is held, for trials only.
    The script is stopped after them, and at no other loop."""
    call: Call | None = None
    """The function of pipediag's that a program called; None where the command runs a script."""
    unblock_interrupts: bool = False
    """Whether SIGINT is blocked until the script begins, and not blocked for the script."""
    safe_path: bool = False
    """Whether the interpreter was told (`-P`, `-I`) not to prepend the script's directory."""

    replaced_files: dict[str, str] | None = None
    """Of a run that is not observed: by their paths, files in place of which others are run."""

    @property
    def input_only(self) -> bool:
        """Whether nothing consumes the batches: the pipeline is measured, and tried, alone."""
        return self.call == "analyze_input"

    @property
    def recording_path(self) -> Path:
        return Path(self.capture_directory) / RECORDING_FILE

    @property
    def journal_path(self) -> Path:
        return Path(self.capture_directory) / JOURNAL_FILE

    @property
    def timeline_path(self) -> Path:
        return Path(self.capture_directory) / TIMELINE_FILE

    @property
    def trace_directory(self) -> Path:
        return Path(self.capture_directory) / TRACE_DIRECTORY

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> RunSettings:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**fields, "args": tuple(fields["args"])})
