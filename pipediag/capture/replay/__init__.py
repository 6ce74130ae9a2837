"""Builds the recorded pipeline again in the user's process, with changes, or says why not."""

from __future__ import annotations

import re
from pathlib import Path

from pipediag.session.recording import RecordedOperation


class NotReplayableError(Exception):
    """A change that can't be tried on this pipeline; the text says why, for the user."""


def said(operation: RecordedOperation) -> str:
    """Name an operation: `the map in train.py, line 12`."""
    if operation.file is None or operation.line is None:
        return f"the {operation.kind}"
    return f"the {operation.kind} in {Path(operation.file).name}, line {operation.line}"


def at_start(text: str) -> str:
    """Return the text with a capital first letter; the rest keeps its case."""
    return text[:1].upper() + text[1:]


_BOLD = re.compile(r"\x1b\[\d+m")
_AROUND = "Exception encountered when calling "
"""Beginning of what Keras puts in front of an error in a layer."""
_TRACED = "in user code:"
"""Line that AutoGraph puts in front of an error in a function that is traced, its cause later."""


def first_line(error: BaseException) -> str:
    """Return the type and the first line of an error, or the line that says its cause."""
    lines = [line.strip() for line in _BOLD.sub("", str(error)).splitlines() if line.strip()]
    if lines and lines[0] == _TRACED:
        causes = [line.partition("Error: ")[2] for line in lines if "Error: " in line]
        lines = causes[-1:] or lines
    elif len(lines) > 1 and lines[0].startswith(_AROUND):
        lines = lines[1:]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
