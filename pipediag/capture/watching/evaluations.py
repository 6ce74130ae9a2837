"""What the steps of loops that evaluate take, and what of that is waiting for a batch.

Such a loop has no windows: a short look into its first evaluation has to do.
"""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass

from pipediag.capture.guard import attempt
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.measuring.instruments import Instruments
from pipediag.session.recorded_loops import RecordedEvaluation
from pipediag.vocabulary import EVALUATING

_WARM_CALLS = 2
"""In the first the step is traced, and the pipeline starts."""
_CALLS = 32
"""Own choice: a short validation has as many, and tf.data remembers three times as many gaps."""
_FEWEST_CALLS = 4
"""Own choice: of an evaluation that is shorter still nothing is said."""


@dataclass
class _Look:
    """At one evaluation, from its first hand-over on."""

    consumer: weakref.ref[Consumer]
    wanted: int
    calls: int = 1
    began_ns: int = 0


class Evaluations:
    """Told of each step of a loop that does not train."""

    def __init__(self, instruments: Instruments) -> None:
        self._with = instruments
        self._looks: dict[str, _Look] = {}
        self._seen: set[str] = set()

    def step(self, consumer: Consumer, now_ns: int) -> None:
        """A step begins."""
        record = consumer.loop.record
        if record.id in self._seen or record.role not in EVALUATING:
            return
        look = self._looks.get(record.id)
        if look is None or look.consumer() is not consumer:
            former = look.calls if look is not None else None
            self._looks[record.id] = _Look(weakref.ref(consumer), _calls_after(former))
            return
        look.calls += 1
        if look.calls == _WARM_CALLS:
            look.began_ns = now_ns
        if look.calls == _WARM_CALLS + look.wanted:
            self._seen.add(record.id)
            del self._looks[record.id]
            note = self._with.recorder.note
            attempt(note, "looking at an evaluation", self._read, consumer, look, now_ns)

    def _read(self, consumer: Consumer, look: _Look, now_ns: int) -> None:
        """What it took until now; the look itself is no step's time."""
        loop, began_ns = consumer.loop, look.began_ns
        batches = (look.calls - _WARM_CALLS) * loop.record.batches_per_call
        model = loop.runtime.model_of(consumer.iterator())
        gaps = model.gaps_us[-batches:] if model is not None else []
        loop.record.evaluation = RecordedEvaluation(batches, now_ns - began_ns, gaps)
        read_ns = time.monotonic_ns()
        loop.last_ns += read_ns - now_ns
        self._with.timeline.passed("aside", now_ns, read_ns)


def _calls_after(former: int | None) -> int:
    """How many are looked at: of an evaluation as short as the former one, all that it has."""
    if former is None:
        return _CALLS
    return max(_FEWEST_CALLS, min(_CALLS, former - _WARM_CALLS))
