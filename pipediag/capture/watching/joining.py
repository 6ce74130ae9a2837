"""Loops whose steps draw from several iterators."""

from __future__ import annotations

from pipediag.capture.guard import attempt
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.watching.thread_state import JoinedIterators
from pipediag.capture.watching.updates import join_role

_JOINED = (
    "Each step draws from several iterators, and trials would use up the others' batches, so "
    "nothing was tried in the running loop."
)


class Joining:
    """Joins iterators to loops; `JoinedIterators` knows which ones a step draws from."""

    def __init__(self, loops: LoopRegistry, instruments: Instruments) -> None:
        self._loops = loops
        self._with = instruments

    def joins(
        self, joined: JoinedIterators, consumer: Consumer, now_ns: int, wait_ns: int | None
    ) -> bool:
        """Return True if the step that is running takes a batch of this iterator, too."""
        if not joined.joins(consumer, now_ns, wait_ns):
            return False
        lead = joined.lead
        assert lead is not None
        if lead.loop.joins(consumer):
            self._join(lead.loop, consumer)
        if consumer.batches == lead.batches == 1:
            self._begins_later(joined, lead, now_ns, wait_ns)
        else:
            consumer.waited_in_all_ns += wait_ns or 0
        return True

    def waited_for_all(
        self, joined: JoinedIterators, lead: Consumer, wait_ns: int | None, continuous: bool
    ) -> int | None:
        """Return what the last step has waited for batches of all its iterators; None where that
        is not known."""
        joined_ns = joined.take_waited()
        if wait_ns is None or joined_ns is None:
            return None
        if continuous:
            lead.waited_in_all_ns += wait_ns
        return wait_ns + joined_ns

    def _join(self, loop: Loop, consumer: Consumer) -> None:
        """The loop's steps draw from another iterator as well, which was not known until now."""
        record = loop.record
        record.untried = _JOINED
        if consumer.loop is loop:
            record.steps -= (consumer.batches - 1) * record.batches_per_call
        else:
            join_role(loop, consumer.loop)
        note = self._with.recorder.note
        attempt(note, "describing a second pipeline", self._loops.describe_joined, consumer)

    def _begins_later(
        self, joined: JoinedIterators, lead: Consumer, now_ns: int, wait_ns: int | None
    ) -> None:
        """Begin an epoch's steps with the first batch that the last of its iterators hands over."""
        loop, asked_ns = lead.loop, now_ns - (wait_ns or 0)
        joined.take_waited()
        self._with.timeline.steps_ended(asked_ns)
        self._with.timeline.steps_begin(loop.record.id, now_ns, wait_ns)
        loop.clock.began_later(now_ns)
        loop.last_ns = now_ns
        if loop.diagnosis is not None:
            loop.diagnosis.boundary(lead, now_ns, wait_ns, continuous=False)
