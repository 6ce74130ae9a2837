"""Training steps that Python gives their batches: `train_on_batch`, a tf.function of tensors.

No iterator tells of them. A step begins where the line that begun the one before calls again; what
other lines train in between is a part of it, as the generator of a GAN beside its discriminator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pipediag.capture.callsites import CallSite
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.runtime import Runtime
from pipediag.capture.threads import EachThread

_CALLS_BESIDE_BATCHES = 200
"""Own choice: a step may train so often on one batch before it is known that its loop trains."""

_Place = tuple[str, int]


@dataclass(eq=False)
class _Cycle:
    """The line at which the steps of one thread begin, and what else has trained since."""

    place: _Place | None = None
    since: set[_Place] = field(default_factory=set)
    consumers: dict[_Place, Consumer] = field(default_factory=dict)
    beside: int = 0
    """Calls since a batch was handed over to the loop that may be behind them."""


class FedSteps:
    """Each thread has steps of its own."""

    def __init__(self, loops: LoopRegistry) -> None:
        self._loops = loops
        self._cycles = EachThread(_Cycle)

    def begins(
        self,
        find_site: Callable[[], CallSite | None],
        last: Consumer | None,
        runtime: Runtime,
        *,
        eager: bool,
    ) -> Consumer | None:
        """Return the consumer of the step that the call begins; None within another step.

        The first call alone tells of no loop: a model is built so, too.

        Args:
            find_site: finds where the script calls; not asked in vain, as that takes a while.
            last: the iterator of this thread that handed over a batch last.
            runtime: of the call.
            eager: whether no function runs the step.
        """
        cycle = self._cycles.here
        if self._is_read(last, cycle) or (site := find_site()) is None:
            return None
        place = (site.file, site.line)
        if place != cycle.place:
            if cycle.place is None or place in cycle.since:
                cycle.place = place
                cycle.since.clear()
            else:
                cycle.since.add(place)
            return cycle.consumers.get(place) if place == cycle.place else None
        cycle.since.clear()
        if place not in cycle.consumers:
            cycle.consumers[place] = self._loops.fed_consumer(site, runtime, eager=eager)
        return cycle.consumers[place]

    def batch_handed_over(self) -> None:
        """Note that an iterator has handed over a batch on this thread."""
        self._cycles.here.beside = 0

    def let_go(self) -> None:
        """Drop what is known of the script's loops."""
        for cycle in self._cycles.all():
            cycle.consumers.clear()

    def _is_read(self, last: Consumer | None, cycle: _Cycle) -> bool:
        """Return True if the batch of the call comes from an iterator after all."""
        if last is None or last.hand_over == "fed" or last.iterator() is None:
            return False
        cycle.beside += 1
        return last.loop.trains or cycle.beside < _CALLS_BESIDE_BATCHES
