"""What the child tells while it works: events read from a pipe, and the line that shows them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

Event = dict[str, Any]
OnProgress = Callable[[Event], None]

CHUNK_BYTES = 1 << 16
ERASE_LINE = "\r\033[2K"
REDRAW_S = 0.5

PHASES = {
    "started": "running the script, waiting for TensorFlow",
    "loop": "a loop over batches has begun",
    "warmup": "warming up",
    "stacks": "sampling Python stacks",
    "profile": "profiling",
    "repeat": "repeating one batch",
    "look-ahead": "looking out for later loops",
    "running-on": "measured; the script runs on",
    "ended": "the script has ended, reading the recording",
}
"""What to show for an event. No text for the baseline window: there must be silence."""


class EventReader:
    """Reads JSON lines from a pipe without ever waiting for its end.

    Grandchildren may hold the pipe open long after the script has gone.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
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
            return os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return b""


class ProgressLine:
    """One line on a terminal that says what is going on; silent while steps are measured."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._shown = False
        self._phase = ""
        self._drawn_at = 0.0
        self._enabled = stream.isatty()

    def __call__(self, event: Event) -> None:
        """Show the phase that `event` begins, or its steps so far."""
        if not self._enabled:
            return
        phase = str(event.get("kind") or event.get("event"))
        text = PHASES.get(phase)
        if text is None:
            self.clear()
        elif phase != self._phase or self._clock() - self._drawn_at >= REDRAW_S:
            steps = event.get("steps")
            self._draw(f"pipediag: {text}" + (f", {steps} steps" if steps else "") + " ...")
        self._phase = phase

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write(ERASE_LINE)
            self._stream.flush()
            self._shown = False

    def _draw(self, text: str) -> None:
        self._stream.write(ERASE_LINE + text)
        self._stream.flush()
        self._shown = True
        self._drawn_at = self._clock()
