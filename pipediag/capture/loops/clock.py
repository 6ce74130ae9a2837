"""Where a loop's time goes beside its steps: what lies between epochs, and what we take."""

from __future__ import annotations

from pipediag.session.recorded_loops import RecordedLoop, RecordedSeam

# More tell nothing new, and all are written down again after each window.
_MOST_SEAMS = 512


class LoopClock:
    """Told of a loop's hand-overs and interruptions, it keeps the record's times."""

    def __init__(self, record: RecordedLoop) -> None:
        self._record = record
        self._interrupted_ns: int | None = None
        self._ended_a_step = False
        self._first_step_of: RecordedSeam | None = None
        self._making_ns = 0
        self._made_ns: int | None = None
        self._made_ahead = False

    def hand_over(self, now_ns: int, wait_ns: int | None, continuous: bool) -> None:
        """A step begins, after a wait; None where the step itself asks for its batch."""
        record = self._record
        asked_ns = now_ns - (wait_ns or 0)
        if record.asked_ns is None or record.last_ns is None:
            record.asked_ns = asked_ns
        elif continuous:
            self._step_over(now_ns)
        else:
            self._gone_on(asked_ns, None if wait_ns is None else now_ns, record.last_ns)
        record.last_ns = now_ns
        self._interrupted_ns = None
        self._making_ns, self._made_ns, self._made_ahead = 0, None, False

    def began_later(self, now_ns: int) -> None:
        """The step that has begun had to wait for the first batch of another iterator as well."""
        record = self._record
        if record.epoch_seams and record.epoch_seams[-1].handed_ns == record.last_ns:
            record.epoch_seams[-1].handed_ns = now_ns
        record.last_ns = now_ns

    def made(self, began_ns: int, made_ns: int) -> None:
        """An iterator was made for what comes next."""
        self._making_ns += made_ns - began_ns
        self._made_ns = made_ns

    def left(self, began_ns: int, left_ns: int) -> None:
        """Keras has left an epoch: it makes the next one's iterator, or lets the last one's go."""
        self._made_ahead = self._made_ns is not None
        self._making_ns, self._made_ns = left_ns - began_ns, None

    def epoch_begins(self, now_ns: int | None) -> None:
        """Keras turned to an epoch's batches then, behind validation and callbacks; None where it
        is not known to."""
        if self._made_ahead and self._made_ns is None:
            self._made_ns = now_ns

    def interrupted(self, now_ns: int, *, ended_a_step: bool) -> None:
        """Something else than a step follows; a call that found no batch has ended no step."""
        self._interrupted_ns = now_ns
        self._ended_a_step = ended_a_step

    def traced(self) -> None:
        """In the step that runs a function was traced: of its time, no wait can be told."""
        self._first_step_of = None

    def held(self) -> None:
        """What lies between the last hand-over and the next one are our trials."""
        self._interrupted_ns = None

    def set_aside(self, ns: int) -> None:
        """So much time was ours, and not the script's."""
        if self._record.warm_ns is not None:
            self._record.set_aside_ns += ns

    def _step_over(self, now_ns: int) -> None:
        record = self._record
        if record.warm_ns is None:
            record.warm_ns = now_ns
            return
        record.warm_steps += record.batches_per_call
        seam, self._first_step_of = self._first_step_of, None
        if seam is not None and record.last_ns is not None:
            seam.first_step_ns = now_ns - record.last_ns

    def _gone_on(self, asked_ns: int, handed_ns: int | None, last_ns: int) -> None:
        """The loop goes on after something else: after an epoch's end, or after our trials."""
        record = self._record
        self._first_step_of = None
        if record.warm_ns is None:
            return
        if self._interrupted_ns is None:
            self.set_aside(asked_ns - last_ns)
            return
        if self._ended_a_step:
            record.warm_steps += record.batches_per_call
        if record.role != "training" or len(record.epoch_seams) == _MOST_SEAMS:
            return
        seam = RecordedSeam(self._interrupted_ns, asked_ns, handed_ns)
        seam.making_ns = self._making_until(asked_ns)
        record.epoch_seams.append(seam)
        if handed_ns is None:
            self._first_step_of = seam

    def _making_until(self, asked_ns: int) -> int:
        if self._made_ns is None or self._record.kind != "keras":
            return self._making_ns
        # Keras asks as soon as the former iterator, which waits for its threads, is gone.
        return self._making_ns + max(0, asked_ns - self._made_ns)
