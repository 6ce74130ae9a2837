"""The recording while it grows, and its file, replaced as a whole after every window."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipediag.capture.guard import attempt
from pipediag.session.recording import RecordedEnvironment, RecordedOperation, Recording
from pipediag.vocabulary import RecordedOutcome


class Recorder:
    """Owns the recording of this process and saves it without ever losing the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()
        self._writing = threading.RLock()
        self._dropped_called_python = False
        self.recording = Recording(
            pid=self._pid,
            started_ns=time.monotonic_ns(),
            outcome="running",
            environment=RecordedEnvironment(python=sys.version.split()[0]),
        )

    @property
    def pipelines_call_python(self) -> bool:
        """Return True if any pipeline of the script calls Python while it runs, or has done so."""
        return self._dropped_called_python or _call_python(self.recording.operations)

    def drop_operations(self, ids: Container[str]) -> None:
        """Let those operations go; the caller is alone in taking any away."""
        operations = self.recording.operations
        with self._writing:
            seen = operations[:]  # other threads add theirs meanwhile
            gone = [operation for operation in seen if operation.id in ids]
            self._dropped_called_python |= _call_python(gone)
            operations[: len(seen)] = [one for one in seen if one.id not in ids]

    def save(self) -> None:
        """Write the recording next to its file, then replace that; a forked child writes nothing.

        A full disk must not fail the script in its middle.
        """
        try:
            self._write()
        except OSError as error:
            self.note(f"A recording could not be saved while the script ran: {error}.")

    def _write(self) -> None:
        if os.getpid() != self._pid:
            return
        part = self._path.with_suffix(".json.part")
        with self._writing:
            try:
                # The script may clean up where our directory is.
                part.parent.mkdir(parents=True, exist_ok=True)
                text = json.dumps(asdict(self.recording), default=_plain)
                part.write_text(text, encoding="utf-8")
                part.replace(self._path)
            except OSError:
                part.unlink(missing_ok=True)
                raise

    def note(self, sentence: str) -> None:
        if sentence not in self.recording.notes:
            self.recording.notes.append(sentence)

    def attempt(self, what: str, ours: Callable[..., Any], *args: Any) -> None:
        attempt(self.note, what, ours, *args)

    def end(self, outcome: RecordedOutcome) -> None:
        """Close the recording; the first ending counts. Raises OSError if it can't be written."""
        if self.recording.outcome != "running":
            return
        self.recording.outcome = outcome
        self._write()


def _plain(value: Any) -> Any:
    """Return a value that JSON lacks, such as a number of NumPy's that a script gave, as one that
    it has."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _call_python(operations: Iterable[RecordedOperation]) -> bool:
    return any(operation.calls_python for operation in operations)


Description = Callable[[RecordedEnvironment], None]
"""Fills in what one framework says of itself."""


def describe_environment(
    environment: RecordedEnvironment, descriptions: Iterable[Description]
) -> None:
    """Fill in what the modules that the script has imported say; nothing new is imported."""
    environment.cuda_visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    environment.numpy = version_of("numpy")
    for describe in descriptions:
        describe(environment)


def version_of(module: str) -> str | None:
    """Return the version of a module that the script has imported, if it has one."""
    return getattr(sys.modules.get(module), "__version__", None)
