"""The windows of a loop that runs inside a tf.function, in intervals between two readings."""

from __future__ import annotations

import time

from pipediag.capture.guard import attempt
from pipediag.capture.loops.loop import Loop
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.measuring.open_window import OpenWindow
from pipediag.capture.measuring.table_watch import TableWatch
from pipediag.capture.runtime import Counter, Keeper
from pipediag.session.messages import LoopMeasured, WindowBegun
from pipediag.vocabulary import WindowKind

INTERVAL_S = 0.2
"""Own choice: seldom enough to cost nothing, and often enough for a window of a few seconds."""

_FEWEST_INTERVALS = 5
_LATER_KEPT = (
    "Batches of the loops that were traced last are kept, and there were too many after it."
)
_NONE_KEPT = "No batch of a loop inside a tf.function was kept to be looked at."


class InGraphMeasure:
    """Told of calls and asked to read, it adds the steps that the loop's counter counted."""

    def __init__(self, loop: Loop, counter: Counter, instruments: Instruments) -> None:
        self.loop = loop
        self.counter = counter
        self._with = instruments
        self._began: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        self._recent: list[int] = []
        self._steps_in_window = 0
        self._window = self._open("warmup")
        self._tables = TableWatch(loop, instruments.recorder)
        self._looking_since: int | None = None
        self.keepers: list[Keeper] = []
        """Of the batches that loops of the function are at."""
        self._let_go: list[Keeper] = []
        """Those that a step may have filled again."""
        self.keeps_none: str | None = None
        """Why one of them keeps none, as a sentence."""
        self.done = False

    def poll(self) -> None:
        """Read the counter while the call runs."""
        now, count = time.monotonic_ns(), self.counter.read()
        self.loop.record.steps = count
        last = self._last
        if last is not None and count == last[1]:
            return
        self._last = (now, count)
        if self._looking_since is not None:
            self._look(now)
            return
        if last is None or self.done:
            return
        steps = count - last[1]
        average = (now - last[0]) // steps
        self.loop.record.elapsed_ns += now - last[0]
        self._steps_in_window += steps
        self._window.add(last[0], average, None, steps)
        self._window.close_block(None, 0, 1)
        self._recent.extend([average] * steps)
        self._advance(now)

    def call_begins(self) -> None:
        """Remember where the call began, for calls that end before the first reading."""
        self._began = (time.monotonic_ns(), self.counter.read())
        self._with.timeline.steps_begin(self.loop.record.id, self._began[0], None)

    def call_ended(self) -> None:
        """Take what the call did since the last reading; between two calls there are no steps.

        The first interval of a longer call is left out: the pipeline starts up in it.
        """
        self._with.timeline.steps_ended(time.monotonic_ns())
        self._last = self._last or self._began
        if self.loop.trains and self._last is not None:
            self.poll()
        self._last = self._began = None
        for keeper in self._let_go:
            self._empty(keeper)
        self.loop.record.seams += 1
        self.loop.record.steps = self.counter.read()

    def let_go_of(self, keeper: Keeper) -> None:
        """Look at no batch of it any more, and hold none."""
        self.keepers = [one for one in self.keepers if one is not keeper]
        self.keeps_none = _LATER_KEPT
        self._let_go.append(keeper)
        self._empty(keeper)

    def finish(self, reason: str) -> None:
        if self.done:
            return
        if self._looking_since is None:
            if self._window.record.kind == "profile":
                self._with.profiler.stop()
            self._window.close(complete=False, reason=reason)
            self._begin_look()
        # What is kept outlives the call.
        self._look_once()
        self._end_look()

    def _advance(self, now: int) -> None:
        pace, elapsed = self._with.pace, self._window.elapsed_ns(now)
        kind = self._window.record.kind
        if kind == "warmup":
            warm, settled = pace.warmed_up(self._recent, len(self._recent), elapsed, None)
            if warm:
                self._window.record.stable = settled
                self._next("baseline")
        elif kind == "baseline" and self._window.count < _FEWEST_INTERVALS:
            return
        elif kind == "baseline" and pace.baseline_done(self._steps_in_window, elapsed, None):
            refused = pace.no_profile or self._with.profiler.start(self.loop.record.id)
            self._next("profile")
            if refused is not None:
                self._window.record.reason = refused
                self._end(complete=False)
        elif kind == "profile" and pace.profile_done(self._steps_in_window, elapsed):
            failed = self._with.profiler.stop()
            if failed is None:
                self._window.record.trace_directory = str(self._with.profiler.directory)
            self._end(complete=failed is None)

    def _next(self, kind: WindowKind) -> None:
        self._window.close(complete=True)
        self._with.recorder.save()
        self._with.tell(WindowBegun(kind))
        self._window = self._open(kind)
        self._steps_in_window = 0
        # Neither this interval nor what the call did before belongs to the new window.
        self._last = self._began = None

    def _end(self, complete: bool) -> None:
        self._window.close(complete=complete, reason=self._window.record.reason)
        self._begin_look()
        if not self._tables.wants_batches:
            self._measured()

    def _look(self, now: int) -> None:
        """Between two readings of the counter the loop has come to another batch."""
        assert self._looking_since is not None
        self._look_once()
        elapsed = now - self._looking_since
        enough = self._with.pace.looked_enough(self._tables.seen, elapsed, None)
        if enough or not self._tables.wants_batches:
            self._measured()

    def _look_once(self) -> None:
        if self._tables.wants_batches:
            self._tables.look_at_kept(self.keepers)

    def _end_look(self) -> None:
        self._tables.end()
        self._looking_since, self.done = None, True
        for keeper in self.keepers:
            self.let_go_of(keeper)

    def _empty(self, keeper: Keeper) -> None:
        attempt(self._with.recorder.note, "letting batches go", keeper.empty)

    def _measured(self) -> None:
        self._end_look()
        self._with.recorder.note(
            "The loop runs inside a tf.function: step times are averages over intervals of "
            f"{INTERVAL_S:g} s, and tf.data gives no gap times for it."
        )
        self._with.recorder.save()
        self._with.tell(LoopMeasured(self.loop.record.line))

    def _begin_look(self) -> None:
        """What the traced step tells of its embeddings; batches that it keeps tell the ids."""
        if self.loop.trains:
            self._tables.begin_inside(None if self.keepers else self.keeps_none or _NONE_KEPT)
            self._looking_since = time.monotonic_ns()

    def _open(self, kind: WindowKind) -> OpenWindow:
        recording = self._with.recorder.recording
        return OpenWindow.begin(
            kind, self.loop.record.id, self.loop.ordinal, recording, self._with.journal
        )
