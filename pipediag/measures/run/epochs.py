"""The epochs of a loop as the ledger has them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipediag.facts.run import PAUSED_NS
from pipediag.measures.loops import pause_among
from pipediag.measures.run.amounts import Amounts, occurrences
from pipediag.measures.run.places import PIPEDIAG, Place, Spent
from pipediag.session.ledger import MAKING, PAUSE, PAUSES
from pipediag.session.recorded_loops import RecordedLoop

_MOST_OURS = 0.1
"""Most of an epoch or its end that pipediag's own work may take. Own choice: reading the model
takes a few milliseconds of an end, a profile more."""

_HIDDEN = 0.5
"""Most of an end that pipediag's own work may take if all ends have much of it. Own choice: of
more, too little is the script's."""

_MOST = 0.5
"""Share of ends from which on the loop's own line is what takes them. Own choice."""

_SHORTER = 1.5
"""Factor by which stretches of steps are shorter than epochs if they end none. Own choice, between
one stretch in an epoch and two."""

_SHORTER_OF_SEVERAL = 2.0
"""Factor where several trainings were seen, whose epochs may have different lengths. Own choice."""

_LEAST_LONGER = 1.2
"""Factor from which on a longer first epoch filled a cache, or read files that were not in memory.
Own choice: first epochs are a little slower anyway."""

_FEWEST_AGAIN = 2
"""Own choice: a single time is that of a last batch that is smaller."""


@dataclass(frozen=True)
class WholeEpoch:
    """Steps of one epoch of a training."""

    number: int
    """Number of the epoch in its training, counted from 0."""
    end_ns: int
    ns: int
    """Time of its steps, without what came between them."""


@dataclass(frozen=True)
class Epochs:
    """Epochs of one training: a `fit`, or a loop of the script's own."""

    steps_ns: list[int]
    """Time in steps, epoch by epoch; the last may have been cut short."""
    starts_ns: list[int]
    """Waits for first batches."""
    ends_ns: dict[Place, list[int]]
    """Time between epochs' steps, by place, of ends that stand for those to come."""
    ends_are_earlier: bool = False
    """True if they are an earlier training's, as this one has none."""
    came: dict[Place, float] = field(default_factory=dict)
    """Occurrences at such an end, by place: `predict` in a callback may come several times."""
    before_ns: dict[Place, int] = field(default_factory=dict)
    """Time in other trainings, by place."""
    before_count: int = 0
    """Epochs of the same loop in other calls of its `fit`."""
    trainings: int = 1
    """Calls of its `fit`, this one among them."""
    whole: list[WholeEpoch] = field(default_factory=list)
    """Epochs that stand for those to come: seen to their end, with next to nothing of pipediag's
    own work in them, and not the first of a training. If this training has none, they are those of
    earlier trainings in the same loop, as are `later_starts_ns` and `ends_ns`."""
    later_starts_ns: list[int] = field(default_factory=list)
    """Waits for first batches, without the first one of a training."""
    usual_ends: int = 0
    """Number of ends in `ends_ns`; 0 if each came within pipediag's own work, such as trials, so
    that the script's time there was not measured."""
    built_again: dict[Place, float] = field(default_factory=dict)
    """Share of the time at each place of compiling that comes again and again among the steps."""

    @property
    def whole_ns(self) -> list[int]:
        return [one.ns for one in self.whole]

    @property
    def ends_seen(self) -> int:
        return max(0, len(self.steps_ns) - 1)

    def longer_at_first_ns(self, usual_ns: float, moved_ns: int) -> int:
        """Return what the first epoch took more than usual ones do, once it has ended: its time in
        steps, without what is among them and has a place of its own, as a wait or building."""
        if not self.ends_seen or self.steps_ns[0] - moved_ns < _LEAST_LONGER * usual_ns:
            return 0
        return round(self.steps_ns[0] - moved_ns - usual_ns)

    def are_interrupted_within(
        self, loop: RecordedLoop, epoch_ns: float, epochs_counted: float
    ) -> bool:
        """Return True if steps were interrupted before an epoch was over, as where each step
        predicts, or each epoch validates in its middle.

        Args:
            loop: if it is the script's own, each epoch has an iterator, which tells it exactly.
            epoch_ns: time of the steps of an epoch: too long where the first one was slow.
            epochs_counted: epochs by the counted batches: too few where the script was killed
                long after that was written. So both have to agree.
        """
        stretches, seen = self.steps_ns[:-1], self.before_count + len(self.steps_ns)
        if loop.kind != "keras" and not loop.from_python and seen > loop.iterators:
            return True
        # Those of several trainings may have different lengths.
        factor = _SHORTER if self.trainings == 1 else _SHORTER_OF_SEVERAL
        shorter = bool(stretches) and factor * sum(stretches) < len(stretches) * epoch_ns
        return shorter and factor * epochs_counted <= seen


def epochs_of(spent: Sequence[Spent], loop_id: str) -> Epochs:
    """Return the epochs of the loop's last training that was seen."""
    stretches = [one for one in spent if one.place.part == "steps" and one.place.loop_id == loop_id]
    if not stretches:
        return Epochs([], [], {})
    fits = list(dict.fromkeys(one.fit for one in stretches))
    *earlier, last = [
        _training([one for one in spent if one.fit == fit], loop_id, over=fit != fits[-1])
        for fit in fits
    ]
    ended = [one for one in (last, *earlier[::-1]) if one.usual_ends]
    before: dict[Place, int] = {}
    for one in spent:
        if one.fit != fits[-1]:
            before[one.place] = before.get(one.place, 0) + one.ns
    return replace(
        last,
        before_ns=before,
        before_count=len({one.span for one in stretches if one.fit != fits[-1]}),
        trainings=len(fits),
        whole=last.whole or [epoch for one in earlier for epoch in one.whole],
        later_starts_ns=last.starts_ns[1:] or [ns for one in earlier for ns in one.starts_ns[1:]],
        ends_ns=ended[0].ends_ns if ended else {},
        ends_are_earlier=bool(ended) and ended[0] is not last,
        came=ended[0].came if ended else {},
        usual_ends=ended[0].usual_ends if ended else 0,
        built_again=_built_again(spent, loop_id, fits[-1]),
    )


def _built_again(spent: Sequence[Spent], loop_id: str, fit: int | None) -> dict[Place, float]:
    """Return the shares of compiling that come again with each new rate or length of a batch.

    Stretches that follow one another are one call that builds a function. A call for an odd last
    batch, or at the beginning alone, does not come again.
    """
    mine = [one for one in spent if one.loop_id == loop_id and one.fit == fit]
    if not mine:
        return {}
    half_ns = (mine[0].start_ns + mine[-1].end_ns) // 2
    calls: dict[Place, list[list[Spent]]] = {}
    for one in mine:
        if one.place.part == "compile":
            known = calls.setdefault(one.place, [])
            if known and one.start_ns <= known[-1][-1].end_ns:
                known[-1].append(one)
            else:
                known.append([one])
    return {
        place: sum(one.ns for call in known[1:] for one in call)
        / sum(one.ns for one in spent if one.place == place)
        for place, known in calls.items()
        if len(known) > _FEWEST_AGAIN and known[-1][0].start_ns >= half_ns
    }


def _training(mine: Sequence[Spent], loop_id: str, *, over: bool) -> Epochs:
    """Return one training; `over` says that its last epoch has ended, too."""
    epochs: dict[int, list[Spent]] = {}
    starts: list[int] = []
    for one in mine:
        if one.place.loop_id == loop_id and one.span is not None:
            if one.place.part == "steps":
                epochs.setdefault(one.span.id, []).append(one)
            elif one.place.part == "epoch_start" and one.place.what is None:
                starts.append(one.ns)
    steps = [sum(one.ns for one in epoch) for epoch in epochs.values()]
    begun = [epoch[0].start_ns for epoch in epochs.values()]
    ended = [epoch[-1].end_ns for epoch in epochs.values()]
    ours = [one for one in mine if one.place == PIPEDIAG]
    whole = list(zip(begun, ended, steps, strict=True))[1 : None if over else -1]
    # Work under the profiler takes longer, and what trials take the place of is not seen.
    ours_in = [_ours_in(ours, *gap) for gap in zip(ended, begun[1:], strict=False)]
    kept = [number for number, part in enumerate(ours_in) if part < _MOST_OURS]
    if not kept and min(ours_in, default=1.0) <= _HIDDEN:
        kept = [*range(len(ours_in))]
    ends = {
        place: [stretches[number] for number in kept]
        for place, stretches in _ends(mine, loop_id, begun).items()
        if kept
    }
    came = {
        place: sum(map(occurrences, ends_here)) / len(kept) for place, ends_here in ends.items()
    }
    ends_ns = {
        place: [sum(one.ns for one in end) for end in ends_here]
        for place, ends_here in ends.items()
    }
    undisturbed = [
        WholeEpoch(number, end_ns, ns)
        for number, (start_ns, end_ns, ns) in enumerate(whole, 1)
        if _ours_in(ours, start_ns, end_ns) < _MOST_OURS
    ]
    return Epochs(steps, starts, ends_ns, came=came, whole=undisturbed, usual_ends=len(kept))


def _ends(
    mine: Sequence[Spent], loop_id: str, begun: Sequence[int]
) -> dict[Place, list[list[Spent]]]:
    """Return what lies between epochs by place and by the end of an epoch, without the last one's.

    Waits for first batches are left out: where a step asks for its batch, only the step shows them.
    """
    count = max(0, len(begun) - 1)
    ends: dict[Place, list[list[Spent]]] = {}
    for one in mine:
        place, number = one.place, bisect_right(begun, one.start_ns) - 1
        made = place.part == "epoch_start" and place.what is not None
        between = place.loop_id == loop_id and (made or place.part in ("epoch_end", "evaluation"))
        if between and 0 <= number < count:
            ends.setdefault(place, [[] for _ in range(count)])[number].append(one)
    return ends


def _ours_in(ours: Sequence[Spent], start_ns: int, end_ns: int) -> float:
    """Return the share of that time that pipediag took."""
    taken = sum(max(0, min(one.end_ns, end_ns) - max(one.start_ns, start_ns)) for one in ours)
    return taken / (end_ns - start_ns) if end_ns > start_ns else 0.0


def first_iterator_ns(place: Place, epochs: Epochs, amounts: Amounts) -> int:
    """Return the time to create the training's first iterator; 0 where it was not seen."""
    seen = [] if epochs.ends_are_earlier else epochs.ends_ns.get(place, [])
    return max(0, amounts.ns.get(place, 0) - epochs.before_ns.get(place, 0) - sum(seen))


def without_pauses(
    amounts: Amounts, loop: RecordedLoop, epochs: Epochs, share_at_line: Mapping[Place, float]
) -> Epochs:
    """Move pauses to rows of their own: one that came once stands for no other epoch, and several
    are the time of ends beyond the shortest of them.

    `share_at_line` is the share of ends for which the loop's own line ran, which frees its
    iterator.
    """
    ends, before = dict(epochs.ends_ns), dict(epochs.before_ns)
    for place, times in epochs.ends_ns.items():
        if place.what != MAKING and share_at_line.get(place, 0.0) < _MOST:
            continue
        first_ns = first_iterator_ns(place, epochs, amounts) if place.what == MAKING else 0
        number = pause_among(times, first_ns)
        pause = Place(place.part, PAUSE, loop.file, loop.line, loop.id)
        if number is not None:
            paused_ns = times[number]
            amounts.move(paused_ns, place, pause)
            amounts.count[pause] = 1
            if place in amounts.count:
                amounts.count[place] = max(1, amounts.count[place] - 1)
            ends[place] = [*times[:number], *times[number + 1 :]]
        else:
            shortest = min([*times, first_ns] if first_ns else times, default=0)
            more = [ns - shortest if ns - shortest >= PAUSED_NS else 0 for ns in times]
            paused_ns, pauses = sum(more), replace(pause, what=PAUSES)
            if len(times) < 2 or not paused_ns:
                continue
            amounts.move(paused_ns, place, pauses)
            ends[pauses] = more
            ends[place] = [ns - paused for ns, paused in zip(times, more, strict=True)]
            if epochs.ends_are_earlier:
                before[pauses] = paused_ns
        if epochs.ends_are_earlier:
            before[place] -= paused_ns
    return replace(epochs, ends_ns=ends, before_ns=before)
