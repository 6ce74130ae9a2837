"""What the child tells while it works: events read from a pipe, and the lines that show them."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from pipediag.encoding.github import inert
from pipediag.encoding.terminal import one_line
from pipediag.runner.screen import ERASE_LINE, columns, fresh_line

Event = dict[str, Any]
OnProgress = Callable[[Event], None]

CHUNK_BYTES = 1 << 16

WHILE_IT_RUNS = {
    "started": "running the script",
    "loop": "warming up {loop}",
    "stacks": "sampling Python stacks",
    "profile": "profiling a few steps",
    "repeat": "repeating one batch",
    "measured": "{loop} is measured",
    "busy": "the script was told to stop, and is busy with its own ending; Ctrl-C ends it",
}
"""What an event begins while the script prints, too: a whole line, so that nothing is added to it.

Nothing is written when the baseline begins, in which steps are timed.
"""
WHILE_IT_WAITS = {
    "diagnosing": "working out what to try",
    "trial": "trying {label}",
    "ended": "the script has ended, reading what was recorded",
}
"""What an event begins while the script stands still: a line that the next one takes away."""

TRIED_IN_LOOP = (
    "trying changes in the running loop, for up to {left_s:.0f} s; the script's own output stands "
    "still meanwhile."
)
TRIED_ALONE = "trying changes on the pipeline alone, for up to {left_s:.0f} s."
NOT_ITS_OWN = "Losses and metrics that it prints afterwards are not those of an undisturbed run."


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
    """Says on a terminal what is going on; silent while steps are measured.

    That trials begin, and which change one of them has confirmed, is told on anything that standard
    error goes to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._on_terminal = stream.isatty()
        self._passing = False
        """Whether the last line is one to take away."""
        self._trials: Event | None = None
        """Trials that are about to begin."""

    def __call__(self, event: Event) -> None:
        """Show what begins with `event`, where that is known, and nothing otherwise."""
        self.clear()
        name = str(event.get("window") or event.get("event"))
        if name == "decided" and event.get("state") == "confirmed":
            self._keep(f"confirmed {_gain(event)}: {event.get('label')}")
        elif name == "trials":
            self._trials = event
        elif name == "trial":
            self._announce_trials(event)
        if not self._on_terminal:
            return
        if name in WHILE_IT_RUNS:
            self._keep(WHILE_IT_RUNS[name].format(loop=_loop(event)))
        elif name in WHILE_IT_WAITS:
            self._pass(WHILE_IT_WAITS[name].format(label=event.get("label")) + _left(event))

    def clear(self) -> None:
        """Take away what is not to stay."""
        if self._passing:
            self._write(ERASE_LINE)
            self._passing = False

    def end(self) -> None:
        """Make room for the report: it begins a line of its own, whatever the script has left."""
        self.clear()
        self._write(self._start or "\n")

    def _announce_trials(self, trial: Event) -> None:
        waiting, self._trials = self._trials, None
        left_s = trial.get("left_s")
        if waiting is None or left_s is None:
            return
        text = (TRIED_ALONE if waiting.get("alone") else TRIED_IN_LOOP).format(left_s=left_s)
        own = waiting.get("alone") or waiting.get("goes_on")
        self._keep(text if own else f"{text} {NOT_ITS_OWN}")

    def _keep(self, text: str) -> None:
        line = one_line(f"pipediag: {text}")
        if self._on_terminal:
            lines = textwrap.wrap(line, columns(self._stream), break_long_words=False)
            line = self._start + "\n".join(map(inert, lines))
        self._write(f"{line}\n")

    def _pass(self, text: str) -> None:
        # A line that is longer than the terminal's could not be taken away.
        line = one_line(f"pipediag: {text} ...")
        self._write(self._start + line[: columns(self._stream) - 1])
        self._passing = True

    @property
    def _start(self) -> str:
        return fresh_line(self._stream) if self._on_terminal else ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _loop(event: Event) -> str:
    line = event.get("line", event.get("loop"))
    return "the loop" if line is None else f"the loop in line {line}"


def _left(event: Event) -> str:
    left = event.get("left_s")
    return f", {left:.0f} s left" if isinstance(left, (int, float)) else ""


def _gain(event: Event) -> str:
    # Not by the reporters' words: importing them would cost the blocks that follow.
    if event.get("basis") == "pipeline":
        return f"{event['speedup']:.2f}x by estimate from the pipeline alone"
    low, high = event["ci95"]
    return f"{event['speedup']:.2f}x [{low:.2f}, {high:.2f}]"
