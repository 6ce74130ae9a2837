"""Reading what the child wrote down: the recording, and the steps that only its journal holds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from pipediag.errors import PipediagError
from pipediag.session.messages import JOURNAL_RECORD
from pipediag.session.recording import RECORDING_FORMAT, RecordedBlock, RecordedWindow, Recording
from pipediag.session.timeline import Timeline, parse_timeline
from pipediag.vocabulary import WindowKind

RECOVERED = "the process ended inside this window; its steps come from the journal"

_ADAPTER = TypeAdapter(Recording)
_AFTER: dict[WindowKind, WindowKind] = {
    "warmup": "baseline",
    "baseline": "stacks",
    "stacks": "profile",
    "profile": "repeat",
    "repeat": "repeat",
}

Journal = NDArray[np.int64]


def _read(path: Path, lost: str) -> bytes | None:
    """Return what the child wrote, or None where it wrote no such file. Raises PipediagError with
    `lost`, the sentence on what that means."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PipediagError(f"cannot read {path}: {error.strerror}. {lost}") from error


def read_recording(path: Path) -> Recording | None:
    """Return the recording in a file, or None where the child died before it wrote one. Raises
    PipediagError where it is damaged or of another format."""
    text = _read(path, "Without it there is nothing to report.")
    if text is None:
        return None
    try:
        content = json.loads(text)
        found = content.get("format") if isinstance(content, dict) else None
        if found != RECORDING_FORMAT:
            raise PipediagError(
                f"{path} is a recording of format {found!r}, and this pipediag reads format "
                f"{RECORDING_FORMAT}. Analyse the script again with one version throughout."
            )
        recording: Recording = _ADAPTER.validate_python(content)
    except json.JSONDecodeError as error:
        raise PipediagError(
            f"{path} is not complete JSON ({error}). Was the disk full? Analyse the script again."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise PipediagError(
            f"{path} is not a recording: {place}: {first['msg']}. Analyse the script again."
        ) from error
    return recording


def read_journal(path: Path) -> Journal:
    """Return the journal's steps, a row for each `JOURNAL_RECORD`. Raises PipediagError."""
    raw = _read(path, "The steps of an unfinished window are lost.") or b""
    whole = len(raw) // JOURNAL_RECORD.size * JOURNAL_RECORD.size
    numbers = np.frombuffer(raw[:whole], dtype="<i8")
    records = numbers.reshape(-1, JOURNAL_RECORD.size // numbers.itemsize)
    steps: Journal = records[records[:, 2] != 0].astype(np.int64)
    return steps


def read_timeline(path: Path) -> Timeline:
    """Read what the child wrote as the run went; empty where it wrote nothing. Raises
    PipediagError: it cannot be read."""
    written = _read(path, "The record of where the run's time went is lost.") or b""
    return parse_timeline(written.splitlines())


def recover(recording: Recording, journal: Journal) -> int:
    """Put the journal's steps that the recording lacks into its windows; return their number.

    A window that the recording does not know follows the last one that it knows: every window but
    the warm-up is entered in the file when the one before it ends.
    """
    added = 0
    known = len(recording.windows)
    ordinals = np.unique(journal[:, 1])
    for ordinal in ordinals:
        steps = journal[journal[:, 1] == ordinal]
        loop = int(steps[0, 0])
        if loop >= len(recording.loops):
            continue
        if ordinal < known:
            added += _complete(recording.windows[int(ordinal)], steps)
            continue
        window = _unknown_window(recording, recording.loops[loop].id, steps, ordinal < ordinals[-1])
        recording.windows.append(window)
        added += _complete(window, steps)
    return added


def _unknown_window(
    recording: Recording, loop_id: str, steps: Journal, more_follow: bool
) -> RecordedWindow:
    """Return the window that followed: a baseline that ends is saved at once, so where more follows
    one that was not, it was warm-up that drained a buffer."""
    before = [window.kind for window in recording.windows if window.loop_id == loop_id]
    kind: WindowKind = _AFTER[before[-1]] if before else "warmup"
    if kind == "baseline" and more_follow:
        kind = "warmup"
    start = int(steps[0, 2])
    return RecordedWindow(kind, loop_id, start, start, complete=False)


def _complete(window: RecordedWindow, steps: Journal) -> int:
    """Append to an incomplete window the steps after its last recorded one."""
    if window.complete:
        return 0
    last = max((block.starts_ns[-1] for block in window.blocks if block.starts_ns), default=0)
    missing = steps[steps[:, 2] > last]
    if not len(missing):
        return 0
    waits = missing[:, 4]
    window.blocks.append(
        RecordedBlock(
            starts_ns=missing[:, 2].tolist(),
            durations_ns=missing[:, 3].tolist(),
            waits_ns=waits.tolist() if waits.any() else [],
        )
    )
    window.end_ns = max(window.end_ns, int(missing[-1, 2] + missing[-1, 3]))
    window.reason = window.reason or RECOVERED
    return len(missing)
