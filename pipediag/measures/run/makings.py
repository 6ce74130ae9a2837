"""Making the iterators of the epochs to come, from few that were seen to be made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipediag.measures.makings import (
    SLOW_ONES,
    all_of_few_ns,
    are_doubtful,
    pause_among,
    usual_ns,
)
from pipediag.measures.run.amounts import Amounts
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.places import Place
from pipediag.measures.run.projected import Projected, in_doubt
from pipediag.session.ledger import MAKING, PAUSE
from pipediag.session.recorded_loops import RecordedLoop


@dataclass(frozen=True)
class Makings:
    """Of one training."""

    first_ns: int
    """For which no other iterator was let go; 0 where it was not seen."""
    later_ns: Sequence[int]

    @property
    def _seen_ns(self) -> list[int]:
        return [*([self.first_ns] if self.first_ns > 0 else []), *self.later_ns]

    def carried_on(self, count: int) -> Projected:
        """So many, those that were seen among them, of which the first lets go of none."""
        return carried_on_from_few(self._seen_ns, count)

    def doubt(self) -> str | None:
        """What is not known of those to come, where it matters."""
        return SLOW_ONES if are_doubtful(self.later_ns, usual_ns(self._seen_ns)) else None


def carried_on_from_few(seen_ns: Sequence[int], count: int) -> Projected:
    """So many makings of iterators, or times that one was let go of, those seen among them."""
    whole_ns, known_ns = all_of_few_ns(seen_ns, count), sum(seen_ns)
    if count < len(seen_ns):
        return in_doubt(whole_ns, count)
    return replace(in_doubt(whole_ns - known_ns, count).plus_ns(known_ns), count=count)


def makings_of(place: Place, times: Sequence[int], epochs: Epochs, amounts: Amounts) -> Makings:
    """`times`: at the ends of epochs that stand for others."""
    seen = epochs.usual_ends_ns.get(place, []) if epochs.ends_seen else []
    later = epochs.before_ns.get(place, 0) + sum(seen)
    return Makings(max(0, amounts.ns.get(place, 0) - later), times)


def without_pauses(amounts: Amounts, loop: RecordedLoop, epochs: Epochs) -> Epochs:
    """Move a pause that came once to a row of its own, so that it stands for no other epoch."""
    ends, before = dict(epochs.usual_ends_ns), dict(epochs.before_ns)
    for place, times in epochs.usual_ends_ns.items():
        if place.what == MAKING:
            number = pause_among(times, makings_of(place, times, epochs, amounts).first_ns)
        else:
            number = pause_among(times) if place in epochs.let_go else None
        if number is None:
            continue
        pause = Place(place.part, PAUSE, loop.file, loop.line, loop.id)
        amounts.move(times[number], place, pause)
        amounts.count[pause] = 1
        if place in amounts.count:
            amounts.count[place] = max(1, amounts.count[place] - 1)
        ends[place] = [*times[:number], *times[number + 1 :]]
        if not epochs.ends_seen:
            before[place] -= times[number]
    paused = ends != epochs.usual_ends_ns
    return replace(epochs, usual_ends_ns=ends, before_ns=before, paused=paused)
