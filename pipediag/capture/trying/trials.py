"""Trials in measured loops: a loop waits between two steps while the parent has edits tried."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pipediag.capture.link import CommandPipe
from pipediag.capture.loops.loop import Consumer, Interruption, Loop
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.process import train_along
from pipediag.capture.trying.protocol import TrialsOfLoop
from pipediag.session.messages import TrialsAwaited
from pipediag.vocabulary import WindowKind

_NOT_HELD = (
    "This Keras walks over its data in a way that does not let a step be repeated, so nothing was "
    "tried in the running `fit`: edits of the input pipeline are tried without the model."
)
_BESIDE = (
    "No trial was made: changes were being tried in a loop of another thread when this one was "
    "measured."
)
# What the parent had asked by then is still to be read, and would pass for what it asks later.
_CUT_OFF = (
    "No trial was made: trials in an earlier loop were cut off, and after that nothing more is "
    "tried. Analyse again with fewer programs beside it, and let the trials come to their end."
)
_BEFORE_THE_STEP_IS_KNOWN: tuple[WindowKind, ...] = ("warmup", "baseline")


class Trials:
    """Trials in one loop at a time, in each loop once; in only one at all where that was asked."""

    def __init__(self, commands: CommandPipe | None, instruments: Instruments) -> None:
        self._commands = commands
        self._with = instruments
        self._settings = instruments.pace.settings
        self._trials: TrialsOfLoop | None = None
        self.loop: Loop | None = None
        """The loop that is held: a plain attribute, as it is read on every step."""
        self._seen: set[str] = set()
        self._no_more: str | None = None
        """Reason why no other loop is held: trials in one were cut off."""
        self._epochs: Counter[int] = Counter()
        """Open epochs of Keras by thread."""

    @property
    def makes_trials(self) -> bool:
        """Return True if the parent asks for trials in this run, which is ended afterwards."""
        return self._commands is not None

    @property
    def repeats_steps(self) -> bool:
        """Return True if this thread's epoch of Keras would come to the same step again."""
        return self._epochs[threading.get_ident()] > 0

    @contextmanager
    def in_epoch(self) -> Iterator[None]:
        """Open for as long as an epoch of Keras runs that can be held."""
        thread = threading.get_ident()
        self._epochs[thread] += 1
        try:
            yield
        finally:
            self._epochs[thread] -= 1

    def may_hold(self, loop: Loop) -> bool:
        return self._settings.hold_loop in (None, loop.record.id)

    def was_held(self, loop: Loop) -> bool:
        return loop.record.id in self._seen

    def hold(self, loop: Loop, consumer: Consumer, *, more_to_come: bool) -> bool:
        """Let the parent ask for trials in a measured loop; return True if it asked for any.

        What training changes is kept and put back when the trials are over, for the script's own
        last code and for the loops that follow where there is `more_to_come`.
        """
        if self._commands is None or self._settings.input_only:
            return False
        others = train_along(loop.runtime)
        if others is not None:
            # Its pipeline may still be tried alone.
            self._with.recorder.note(f"Nothing was tried in the training itself: {others}.")
            loop.record.untried = f"No trial was made: {others}."
            return False
        if consumer.distributed:
            return False
        lack = self._lack(loop)
        if lack is not None:
            loop.record.untried = lack
            return False
        self._trials = self._of(self._commands, loop, alone=False, more_to_come=more_to_come)
        self.loop = loop
        self._trials.begin(consumer)
        return self._trials is not None

    def _lack(self, loop: Loop) -> str | None:
        """Return why the loop can't be held, as a sentence, if so."""
        if self._no_more is not None:
            return self._no_more
        if loop.record.kind == "keras" and not self.repeats_steps:
            return _NOT_HELD
        if self.loop is not None:
            return _BESIDE
        lack = self._with.state.keep()
        return f"No trial was made: {lack}." if lack is not None else None

    def _of(
        self, commands: CommandPipe, loop: Loop, *, alone: bool, more_to_come: bool
    ) -> TrialsOfLoop:
        self._seen.add(loop.record.id)
        recording = self._with.recorder.recording
        # The step time was known when the windows after the baseline began.
        closer = (
            window.start_ns
            for window in recording.windows
            if window.loop_id == loop.record.id and window.kind not in _BEFORE_THE_STEP_IS_KNOWN
        )
        now_ns = time.monotonic_ns()
        since_ns = now_ns if alone else min(closer, default=now_ns)
        # What the script itself did between two epochs is no closer look.
        since_ns += sum(
            (one.handed_ns or one.asked_ns) - one.start_ns
            for one in loop.record.epoch_boundaries
            if one.start_ns >= since_ns
        )
        self._with.tell(TrialsAwaited(loop.record.id, alone, more_to_come, since_ns))
        return TrialsOfLoop(loop, commands, self._with.tell, self._over)

    def boundary(self, consumer: Consumer, now_ns: int, continuous: bool) -> bool:
        """Note that a step of the held loop ended; return True if it goes on being held."""
        assert self._trials is not None
        self._trials.boundary(consumer, now_ns, continuous)
        return self._trials is not None

    def traced(self, loop: Loop) -> None:
        if self._trials is not None and loop is self.loop:
            self._trials.traced = True

    def failed(self, consumer: Consumer, error: BaseException) -> bool:
        """Note that a step raised; return True if a variant that stepped aside was to blame."""
        trials = self._trials
        return trials is not None and consumer.loop is self.loop and trials.failed(error)

    def stop(self, reason: str) -> None:
        """End trials with the script; a loop that ended in them has its pipeline left to try."""
        if self._trials is not None:
            self._seen.discard(self._trials.loop.record.id)
            self._trials.stop(reason)

    def leave(self, reason: str) -> None:
        """End trials as the script has left the loop and goes on, with its own training."""
        self._no_more = _CUT_OFF
        self.stop(reason)

    def try_pipelines_alone(self, loops: Iterable[Loop]) -> None:
        """Let the parent try pipelines of loops that could not be held while they ran; and of
        that which evaluates longest."""
        known = [loop for loop in loops if loop.dataset is not None]
        evaluating = [loop for loop in known if not loop.trains and loop.record.evaluation]
        longest = sorted(evaluating, key=lambda loop: -loop.record.elapsed_ns)[:1]
        for loop in [loop for loop in known if loop.trains] + longest:
            if self._commands is None or self.was_held(loop) or not self.may_hold(loop):
                continue
            if loop.record.several_iterators:  # one of them alone says nothing of the step
                continue
            loop.record.untried = self._no_more
            if self._no_more is None:
                self._of(self._commands, loop, alone=True, more_to_come=False).begin(None)

    def _over(self, unheard: bool) -> None:
        """Restore everything, and hold no other loop where the parent may still ask for one."""
        if unheard:
            self._no_more = _CUT_OFF
        if self.loop is not None:
            # What they took is no step, and neither is the one that they ended in.
            self.loop.interruption = Interruption(by_trials=True)
        self._trials = self.loop = None
        self._with.state.give_back()
