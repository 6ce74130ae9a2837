"""Which loop is measured, and what follows once it was: trials, a later loop, or the end."""

from __future__ import annotations

import time
from collections.abc import Callable

from pipediag.capture.callsites import frames
from pipediag.capture.environment import describe_environment
from pipediag.capture.guard import attempt, nothing
from pipediag.capture.loops.behind import trains_behind
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.diagnosis import Diagnosis
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.signal_handlers import let_pass
from pipediag.capture.trying.held_loops import HeldLoops
from pipediag.capture.watching.evaluations import Evaluations
from pipediag.capture.watching.stopping import Stopping
from pipediag.capture.watching.turns import Turns
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import LoopFound
from pipediag.session.settings import RunSettings

_MOST_DIAGNOSED = 6
_SPARE_ONCE_MEASURED = 64
"""Own choice: what is noted and not told yet is lost where the process is killed."""
# A loop that has not come back for so long, while another trains, is over.
_ABANDONED_NS = 3_000_000_000


class Diagnosing:
    """One loop at a time, each in its turn; told of every step that is the script's own."""

    def __init__(
        self,
        updates: UpdateWatch,
        instruments: Instruments,
        settings: RunSettings,
        held: HeldLoops,
        stopping: Stopping,
        turns: Turns,
    ) -> None:
        self._updates = updates
        self._with = instruments
        self._held = held
        self._holds_only = settings.hold_loop is not None
        self._wanted_line = settings.loop if isinstance(settings.loop, int) else None
        self._stopping = stopping
        self._turns = turns
        self._evaluations = Evaluations(instruments)
        self._begun = 0
        self.active: Diagnosis | None = None
        """That of the loop which is being measured: a plain attribute, read on every step."""
        self.before_training: Callable[[], None] = nothing
        """Called when a training loop has its first batch and has made no step with it."""
        self.when_measured: Callable[[], None] = nothing
        """Called between two steps of a training loop whose last window is over."""

    @property
    def looks(self) -> bool:
        """Whether what functions are called with tells something."""
        return self.active is not None and self.active.looks

    def repeats(self, loop: Loop) -> bool:
        """Whether the loop was handed a batch again: a step that is ours, not the script's."""
        active = self.active
        return active is not None and active.loop is loop and bool(active.repeats)

    def spare_steps(self, loop: Loop) -> int:
        """So many of its next steps are of no use to its diagnosis."""
        active = self.active
        if active is not None:
            return active.spare_steps if active is loop.diagnosis else 0
        return _SPARE_ONCE_MEASURED if self._goes_on_measured(loop) else 0

    def _goes_on_measured(self, loop: Loop) -> bool:
        """Whether nothing is decided at its steps any more, but that they are counted."""
        measured = loop.diagnosis is not None and not loop.diagnosis.measuring
        waits_for_later = self._stopping.deadline_ns is not None
        return measured and self._held.loop is None and not waits_for_later

    def step(self, consumer: Consumer, now_ns: int, wait_ns: int | None, continuous: bool) -> None:
        """Measure the loop, or begin to if it trains and none is being measured.

        Raises:
            StopScript: enough was measured.
        """
        loop = consumer.loop
        if self._holds_only:
            self._hold_as_soon_as_it_runs(consumer, continuous)
        elif loop.diagnosis is not None:
            self._measure(loop.diagnosis, consumer, now_ns, wait_ns, continuous)
            if loop.diagnosis is self.active and not self.active.measuring:
                self._measured(loop, consumer)
        elif not loop.trains:
            self._evaluations.step(consumer, now_ns)
        elif self._begun < _MOST_DIAGNOSED and self._is_wanted(loop):
            self._give_up_the_abandoned(loop, now_ns)
            if self.active is None:
                self._begin(loop, consumer, now_ns)
        deadline_ns = self._stopping.deadline_ns
        waits = self.active is None and self._held.loop is None
        if deadline_ns is not None and now_ns > deadline_ns and waits:
            self._stopping.stop()

    def released(self, loop: Loop) -> None:
        """Trials in the loop are over.

        Raises:
            StopScript: enough was measured.
        """
        self._trials_over(loop)
        self._stopping.go_on_or_stop(loop)

    def left(self, loop: Loop) -> None:
        """The script has left a held loop before its trials were over."""
        self._held.leave("the script left its training loop in the middle of them")
        self._trials_over(loop)

    def script_over(self, reason: str) -> None:
        """What is measured and what is tried ends here."""
        if self.active is not None:
            self.active.finish(reason)
        self._held.stop(reason)
        self._with.state.give_back()

    def given_up(self) -> None:
        """An error of ours: what was measured is kept, and nothing more is measured."""
        note = self._with.recorder.note
        reason = "pipediag stopped after an error of its own"
        active, self.active = self.active, None
        if active is not None:
            attempt(note, "closing a window", active.finish, reason)
        attempt(note, "ending trials", self._held.stop, reason)
        attempt(note, "putting the training back", self._with.state.give_back)

    def _trials_over(self, loop: Loop) -> None:
        # What the trials took is no step, and neither is the one that they ended in.
        self._turns.here.seam = True
        loop.clock.held()
        self._with.timeline.passed("aside", loop.last_ns, time.monotonic_ns())
        self._updates.take_updated()

    def _is_wanted(self, loop: Loop) -> bool:
        return self._wanted_line is None or self._wanted_line == loop.record.line

    def _measure(
        self,
        diagnosis: Diagnosis,
        consumer: Consumer,
        now_ns: int,
        wait_ns: int | None,
        continuous: bool,
    ) -> None:
        try:
            diagnosis.boundary(consumer, now_ns, wait_ns, continuous)
        except Exception as error:
            let_pass(error)
            # A fault of ours must not become the script's.
            note = self._with.recorder.note
            note(f"Measuring failed, and was given up: {type(error).__name__}: {error}")
            attempt(note, "closing a window", diagnosis.finish, "measuring failed")

    def _give_up_the_abandoned(self, loop: Loop, now_ns: int) -> None:
        """A loop that ended too early must not keep a later one from being measured."""
        if self.active is None:
            return
        former = self.active.loop
        one_fit_after_another = former.fit_begun and loop.fit_begun and not former.runs_elsewhere()
        if one_fit_after_another or now_ns - former.last_ns > _ABANDONED_NS:
            self.active.finish("the loop ended before this window was full")
            self.active = None
            # What it trained on a repeated batch must not outlast it, nor be put back later on,
            # over what this loop will have trained.
            self._with.state.give_back()

    def _begin(self, loop: Loop, consumer: Consumer, now_ns: int) -> None:
        loop.diagnosis = self.active = Diagnosis(loop, self._with)
        if self._held.may_try:
            loop.dataset = consumer.dataset
        self._begun += 1
        note = self._with.recorder.note
        attempt(note, "reading what trains later", _read_what_follows, loop)
        self.before_training()
        self._with.tell(LoopFound(loop.record.line))
        describe_environment(self._with.recorder.recording.environment, self._with.descriptions)
        self._with.recorder.save()
        loop.diagnosis.boundary(consumer, now_ns, None, continuous=False)

    def _hold_as_soon_as_it_runs(self, consumer: Consumer, continuous: bool) -> None:
        """A loop that an earlier run of the script has measured: it may end within a few steps."""
        loop = consumer.loop
        if not loop.trains or not self._held.may_hold(loop):
            return
        loop.dataset = consumer.dataset
        if continuous and loop.started_up:
            self._with.recorder.save()
            self._measured(loop, consumer)

    def _measured(self, loop: Loop, consumer: Consumer) -> None:
        """What would help the loop is tried, where the parent asks for that."""
        self.active = None
        goes_on = self._stopping.goes_on_after(loop)
        if not goes_on:
            self._stopping.time_a_collection()
        one_iterator = consumer.hand_over != "fed" and not loop.joined
        if one_iterator and self._held.hold(loop, consumer, more_to_come=goes_on):
            return
        if self._held.was_held(loop):
            self.released(loop)
        else:
            self._stopping.go_on_or_stop(loop)
        self.when_measured()

    def let_go(self) -> None:
        """Drop what is the script's, and hear of it no more: also in a child that it forks."""
        active, self.active = self.active, None
        if active is not None:
            note = self._with.recorder.note
            attempt(note, "leaving a step that was listened to", active.looking.interrupted)
        for turn in self._turns.all():
            turn.last = None


def _read_what_follows(loop: Loop) -> None:
    loop.record.followed_by = trains_behind(frames(), in_fit=loop.fit_begun)
