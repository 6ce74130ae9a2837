"""Loops held between two steps while the parent has edits tried in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pipediag.capture.link import CommandPipe
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.process import train_along
from pipediag.capture.trying.answering import Answering
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
_LEFT = (
    "No trial was made: the script had left a loop in the middle of its trials, and after that "
    "nothing more is tried. Analyse again, and let the trials come to their end."
)
_UNHEARD = (
    "No trial was made: the process that says what to try had left a loop without a word for too "
    "long, and after that nothing more is tried. Analyse again with fewer programs beside it."
)
_BEFORE_THE_STEP_IS_KNOWN: tuple[WindowKind, ...] = ("warmup", "baseline")


class HeldLoops:
    """Holds one loop at a time for trials, each loop once; only one at all where that was asked."""

    def __init__(
        self,
        commands: CommandPipe | None,
        instruments: Instruments,
        *,
        only: str | None = None,
        input_only: bool = False,
    ) -> None:
        self._commands = commands
        self._with = instruments
        self._only = only
        """Id of the one loop that may be held, or else its pipeline tried; None for each."""
        self._input_only = input_only
        """True if the steps are of nobody's, so that only pipelines are tried."""
        self._trials: Answering | None = None
        self.loop: Loop | None = None
        """The loop that is held: a plain attribute, as it is read on every step."""
        self._begins = threading.Lock()
        self._seen: set[str] = set()
        self._no_more: str | None = None
        """Why no other loop is held: one was left in the middle of trials."""
        self._epochs = 0

    @property
    def makes_trials(self) -> bool:
        """Return True if the parent asks for trials in this run, which is ended afterwards."""
        return self._commands is not None

    @property
    def repeats_steps(self) -> bool:
        """Return True if Keras' running epoch would come to the same step again, if held."""
        return self._epochs > 0

    @contextmanager
    def in_epoch(self) -> Iterator[None]:
        """Open for as long as an epoch of Keras runs that can be held."""
        self._epochs += 1
        try:
            yield
        finally:
            self._epochs -= 1

    @property
    def skipped(self) -> Sequence[Any]:
        """Callbacks that are not called for the steps that are made now."""
        return self._trials.skipped if self._trials is not None else ()

    @property
    def may_try(self) -> bool:
        """Return True if the parent may ask for trials."""
        return self._commands is not None

    def may_hold(self, loop: Loop) -> bool:
        """Return True if trials may be made for this loop rather than for another one alone."""
        return self._only in (None, loop.record.id)

    def was_held(self, loop: Loop) -> bool:
        return loop.record.id in self._seen

    def hold(self, loop: Loop, consumer: Consumer, *, more_to_come: bool) -> bool:
        """Let the parent ask for trials in a measured loop; returns whether it asked for any.

        The run is one that pipediag ends. What training changes is kept all the same and put back
        when the trials are over, for the script's own last code and for the loops that follow
        where there is `more_to_come`.
        """
        if self._commands is None or not self._can_be_held(loop, consumer):
            return False
        with self._begins:
            if self.loop is not None:
                loop.record.untried = _BESIDE
                return False
            trials = self._begun(loop, self._commands, more_to_come=more_to_come)
        if trials is None:
            return False
        return self._goes_on(partial(trials.begin, consumer))

    def _goes_on(self, tell: Callable[[], None]) -> bool:
        """Return True if trials go on after `tell`; whatever ends them gives all back."""
        try:
            tell()
        except BaseException:
            self._released()
            raise
        return not self._released()

    def _can_be_held(self, loop: Loop, consumer: Consumer) -> bool:
        """Return True if steps can be made beside the loop's own; says why not if not."""
        if self._input_only:
            return False
        others = train_along(loop.runtime)
        if others is not None:
            loop.record.untried = f"No trial was made: {others}."
            # Its pipeline may still be tried alone.
            self._with.recorder.note(f"Nothing was tried in the training itself: {others}.")
            return False
        if consumer.distributed:
            return False
        if self._no_more or (loop.record.kind == "keras" and not self.repeats_steps):
            loop.record.untried = self._no_more or _NOT_HELD
            return False
        return True

    def _begun(self, loop: Loop, commands: CommandPipe, *, more_to_come: bool) -> Answering | None:
        """Trials that the parent may ask for from now on; None where none can be made."""
        lack = self._with.state.keep()
        if lack is not None:
            loop.record.untried = f"No trial was made: {lack}."
            return None
        self._seen.add(loop.record.id)
        since_ns = self._looked_closer_ns(loop)
        self._with.tell(
            TrialsAwaited(
                loop.record.id,
                alone=False,
                more_to_come=more_to_come,
                since_ns=since_ns,
                since_ms=self._recorded_ms(since_ns),
            )
        )
        trials = Answering(loop, commands, self._with.tell)
        self._trials, self.loop = trials, loop
        return trials

    def boundary(self, consumer: Consumer, now_ns: int, continuous: bool) -> bool:
        """A step of the held loop ended; returns whether the loop goes on being held."""
        assert self._trials is not None
        return self._goes_on(partial(self._trials.boundary, consumer, now_ns, continuous))

    def traced(self, loop: Loop) -> None:
        """A training function was traced in the step that is running."""
        if self._trials is not None and loop is self.loop:
            self._trials.traced()

    def failed(self, consumer: Consumer, error: BaseException) -> bool:
        """A step raised; returns whether an arm was to blame, which has stepped aside."""
        trials = self._trials
        if trials is None or consumer.loop is not self.loop:
            return False
        blamed = trials.failed(error)
        self._released()
        return blamed

    def stop(self, reason: str) -> None:
        """The script is over; a loop that ended while it was held has its pipeline left to try."""
        if self._trials is not None:
            self._trials.stop(reason)
            self._seen.discard(self._trials.loop.record.id)
            self._trials = self.loop = None

    def leave(self, reason: str) -> None:
        """The script has left the held loop and goes on: with the training that it had reached."""
        self._no_more = _LEFT
        with self._begins:
            self.stop(reason)
            self._with.state.give_back()

    def try_pipelines_alone(self, loops: Iterable[Loop]) -> None:
        """Let the parent try pipelines of loops that could not be held while they ran; and of
        that which evaluates longest."""
        known = [loop for loop in loops if loop.dataset is not None]
        for loop in known:
            if loop.trains:
                self._try_pipeline_alone(loop)
        evaluating = [loop for loop in known if not loop.trains and loop.record.evaluation]
        if evaluating:
            self._try_pipeline_alone(max(evaluating, key=lambda loop: loop.record.elapsed_ns))

    def _try_pipeline_alone(self, loop: Loop) -> None:
        if self._commands is None or loop.record.id in self._seen or not self.may_hold(loop):
            return
        self._seen.add(loop.record.id)
        if self._no_more:
            loop.record.untried = self._no_more
            return
        loop.record.untried = None
        now_ns = time.monotonic_ns()
        self._with.tell(
            TrialsAwaited(
                loop.record.id,
                alone=True,
                more_to_come=False,
                since_ns=now_ns,
                since_ms=self._recorded_ms(now_ns),
            )
        )
        trials = Answering(loop, self._commands, self._with.tell)
        trials.without_consumer()
        self._hear_of(trials)

    def _recorded_ms(self, at_ns: int) -> float:
        return (at_ns - self._with.recorder.recording.started_ns) / 1e6

    def _looked_closer_ns(self, loop: Loop) -> int:
        """Return when the windows after the baseline began: the step time was known then."""
        windows = self._with.recorder.recording.windows
        closer = (
            one
            for one in windows
            if one.loop_id == loop.record.id and one.kind not in _BEFORE_THE_STEP_IS_KNOWN
        )
        return min((one.start_ns for one in closer), default=time.monotonic_ns())

    def _released(self) -> bool:
        if self._trials is None or not self._trials.over:
            return False
        self._hear_of(self._trials)
        with self._begins:
            self._trials = self.loop = None
            self._with.state.give_back()
        return True

    def _hear_of(self, trials: Answering) -> None:
        """Hold no other loop where the parent may still ask for what nobody waits for."""
        if trials.unheard:
            self._no_more = _UNHEARD
