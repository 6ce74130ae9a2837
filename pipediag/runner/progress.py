"""Progress of an analysis, as lines on a terminal."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from pipediag.encoding import inert, one_line
from pipediag.session.messages import (
    Closing,
    Ended,
    FromChild,
    LoopFound,
    LoopMeasured,
    Started,
    Stopping,
    TrialsAwaited,
    WindowBegun,
)
from pipediag.trials import Decided, TrialEvent, Trying
from pipediag.vocabulary import WindowKind

if TYPE_CHECKING:
    from pipediag.session.trials import Trial

COLUMNS = 80
"""Width of a terminal that does not say its own."""


def columns(stream: TextIO) -> int:
    """Return the number of characters in a line."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS


@dataclass(frozen=True)
class Notice:
    """A line that stands for no message of the child."""

    text: str
    shown: Literal["anywhere", "on a terminal", "for a while"] = "anywhere"
    """`for a while`: on a terminal, until the next line."""


Shown = FromChild | TrialEvent | Notice
OnProgress = Callable[[Shown], None]

WINDOWS: dict[WindowKind, str] = {
    "baseline": "timing steps, without a profiler",
    "stacks": "sampling Python stacks",
    "profile": "profiling a few steps",
}
"""Each is a line before the window's first step: the child leaves out a step or two then."""

NOT_ITS_OWN = "Losses and metrics that it prints afterwards are not those of an undisturbed run."
TRIED_IN_LOOP = (
    "trying changes in the running loop, for up to {left_s:.0f} s; the script's own output "
    f"pauses meanwhile. {NOT_ITS_OWN}"
)
REPEATED = (
    "repeating one batch, which may extend the epoch beyond its end; then the script is stopped. "
    f"{NOT_ITS_OWN}"
)
TRIED_ALONE = "trying changes on the pipeline alone, for up to {left_s:.0f} s."
DIAGNOSING = Notice("working out what to try", "for a while")
BUSY = Notice("the script is still shutting down; Ctrl-C ends it", "on a terminal")
NO_LOOP_YET = Notice(
    "no training loop yet. The script runs until one starts: Keras `fit`, a loop over a tf.data "
    "dataset, or one that calls `train_on_batch` or a training tf.function. --timeout ends it "
    "sooner."
)


def awaited_after(message: FromChild) -> Notice | None:
    """Return what to say where nothing follows on this message for long."""
    match message:
        case Started():
            return NO_LOOP_YET
        case LoopFound(line):
            return Notice(
                f"{_loop(line)} has not been measured yet: its steps are long, something "
                "interrupts them each time, its first epoch fills a cache, or it has ended. "
                "--timeout ends the script sooner."
            )
        case Stopping() | Ended() | Closing():
            return BUSY
    return None


def runs_again(changes: int) -> Notice:
    """Return what to say before a second run, in which so many changes are tried."""
    return Notice(
        f"the script ended before {changes} change{'' if changes == 1 else 's'} could be tried "
        "in its training loop; running it a second time for that. Its output will appear again."
    )


class ProgressLine:
    """Says on a terminal what is going on; silent once the steps of a window are measured.

    What takes long, what disturbs the script and what a trial has confirmed is printed on anything
    that standard error goes to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._on_terminal = stream.isatty()
        self._passing = False
        """True if the last line is one to take away."""
        self._trials: TrialsAwaited | None = None
        """Trials that are about to begin."""

    def __call__(self, message: Shown) -> None:
        """Show what begins with `message`, and nothing where that is not for a reader."""
        self.clear()
        if isinstance(message, TrialsAwaited):
            self._trials = message
        elif isinstance(message, Trying) and self._trials is not None:
            text = TRIED_ALONE if self._trials.alone else TRIED_IN_LOOP
            self._trials = None
            self._keep(text.format(left_s=message.left_s))
        notice = notice_of(message)
        if notice is None or not (self._on_terminal or notice.shown == "anywhere"):
            return
        if notice.shown == "for a while":
            # A line that is longer than the terminal's could not be taken away.
            line = one_line(f"pipediag: {notice.text} ...")
            self._write(self._start + line[: columns(self._stream) - 1])
            self._passing = True
        else:
            self._keep(notice.text)

    def clear(self) -> None:
        """Take away what is not to stay."""
        if self._passing:
            self._write("\r\033[2K")
            self._passing = False

    def end(self) -> None:
        """Make room for the report: it begins a line of its own, whatever the script has left."""
        self.clear()
        self._write(self._start or "\n")

    def _keep(self, text: str) -> None:
        line = one_line(f"pipediag: {text}")
        if self._on_terminal:
            lines = textwrap.wrap(line, columns(self._stream), break_long_words=False)
            line = self._start + "\n".join(map(inert, lines))
        self._write(f"{line}\n")

    @property
    def _start(self) -> str:
        """Return what brings the cursor of a terminal to the start of an empty line.

        A line's worth of blanks ends in the next line, but for a cursor that stands at the start:
        there it only fills the line. What was written before stays; a progress bar goes on below.
        """
        return " " * columns(self._stream) + "\r\033[K" if self._on_terminal else ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def notice_of(message: Shown) -> Notice | None:
    """Return the line for what begins; one that passes where the script stands still meanwhile."""
    notice: Notice | None = None
    match message:
        case Notice():
            notice = message
        case Decided(label, trial) if trial.state == "confirmed":
            notice = Notice(f"confirmed {_gain(trial)}: {label}")
        case Started():
            notice = Notice("running the script", "on a terminal")
        case LoopFound(line):
            notice = Notice(f"warming up {_loop(line)}", "on a terminal")
        case WindowBegun("repeat"):
            notice = Notice(REPEATED)
        case WindowBegun(window) if window in WINDOWS:
            notice = Notice(WINDOWS[window], "on a terminal")
        case LoopMeasured(line):
            notice = Notice(f"{_loop(line)} has been measured", "on a terminal")
        case Trying(label, left_s):
            notice = Notice(f"trying {label}, {left_s:.0f} s left", "for a while")
        case Ended():
            notice = Notice("the script has ended; reading the recording", "for a while")
    return notice


def _loop(line: int | None) -> str:
    return "the loop" if line is None else f"the loop on line {line}"


def _gain(trial: Trial) -> str:
    assert trial.ci95 is not None
    # Not by the reporters' words: importing them would cost the blocks that follow.
    if trial.basis == "pipeline":
        return f"{trial.speedup:.2f}x by estimate from the pipeline alone"
    low, high = trial.ci95
    return f"{trial.speedup:.2f}x [{low:.2f}, {high:.2f}]"
