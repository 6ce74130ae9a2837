"""Reading what the child wrote down: the recording and the timeline."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pipediag.errors import PipediagError
from pipediag.session.recording import RECORDING_FORMAT, Recording
from pipediag.session.timeline import Timeline, parse_timeline

_ADAPTER = TypeAdapter(Recording)


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


def read_timeline(path: Path) -> Timeline:
    """Read what the child wrote as the run went; empty where it wrote nothing. Raises
    PipediagError: it cannot be read."""
    written = _read(path, "The record of where the run's time went is lost.") or b""
    return parse_timeline(written.splitlines())
