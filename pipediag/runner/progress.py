"""What the child tells while it works: events read from a pipe, and the line that shows them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from pipediag.encoding.terminal import one_line

Event = dict[str, Any]
OnProgress = Callable[[Event], None]

CHUNK_BYTES = 1 << 16
ERASE_LINE = "\r\033[2K"

PHASES = {
    "started": "running the script",
    "loop": "warming up the loop in line {line}",
    "stacks": "sampling Python stacks",
    "profile": "profiling a few steps",
    "repeat": "repeating one batch",
    "trial": "trying {label}",
    "measured": "the loop in line {line} is measured",
    "diagnosing": "working out what to try",
    "busy": "the script was told to stop and is busy with its own ending; Ctrl-C ends it",
    "ended": "the script has ended, reading what was recorded",
}
"""What to show from an event on; events and windows without a text, as the baseline, clear it."""


class EventReader:
    """Reads JSON lines from a pipe without ever waiting for its end.

    Grandchildren may hold the pipe open long after the script has gone.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._partial = b""

    def read(self) -> Iterator[Event]:
        """The events that have arrived, in order; lines that are no JSON object are passed over."""
        for line in self._lines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event

    def _lines(self) -> list[bytes]:
        while chunk := self._chunk():
            self._partial += chunk
        *lines, self._partial = self._partial.split(b"\n")
        return lines

    def _chunk(self) -> bytes:
        try:
            return os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return b""


class ProgressLine:
    """One line on a terminal that says what is going on; silent while steps are measured.

    A change that a trial has confirmed gets a line of its own, which stays, on anything that
    standard error goes to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False

    def __call__(self, event: Event) -> None:
        """Show what begins with `event`, where that is known, and nothing otherwise."""
        self.clear()
        if event.get("event") == "decided":
            self._decided(event)
            return
        text = _text(event) if self._stream.isatty() else None
        if text is not None:
            self._stream.write(one_line(f"pipediag: {text} ..."))
            self._stream.flush()
            self._shown = True

    def _decided(self, event: Event) -> None:
        if event.get("state") == "confirmed":
            said = one_line(f"pipediag: confirmed {_gain(event)}: {event.get('label')}")
            self._stream.write(f"{said}\n")
            self._stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write(ERASE_LINE)
            self._stream.flush()
            self._shown = False


def _text(event: Event) -> str | None:
    phase = PHASES.get(str(event.get("window") or event.get("event")))
    if phase is None:
        return None
    left = event.get("left_s")
    rest = f", {left:.0f} s left" if isinstance(left, (int, float)) else ""
    return phase.format(line=event.get("line"), label=event.get("label")) + rest


def _gain(event: Event) -> str:
    # Not by the reporters' words: importing them would cost the blocks that follow.
    if event.get("basis") == "pipeline":
        return f"{event['speedup']:.2f}x by estimate from the pipeline alone"
    low, high = event["ci95"]
    return f"{event['speedup']:.2f}x [{low:.2f}, {high:.2f}]"
