"""The epochs of a loop as the ledger has them: what each of them took beside its steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipediag.measures.run.places import PIPEDIAG, Place, Spent

_MOST_OURS = 0.1
"""Own choice: a reading of the model takes a few milliseconds of an epoch's end, a profile more."""


@dataclass(frozen=True)
class Epochs:
    """Of one training: a `fit`, or a loop of the script's own."""

    steps_ns: list[int]
    """In steps, epoch by epoch; the last may have been cut short."""
    starts_ns: list[int]
    """Waits for first batches."""
    ends_ns: dict[Place, list[int]]
    """What lay between one epoch's steps and the next one's, by place; one entry an end seen."""
    before_ns: dict[Place, int] = field(default_factory=dict)
    """In other trainings, by place."""
    before_count: int = 0
    """Epochs of the same loop in other calls of its `fit`."""

    @property
    def ends_seen(self) -> int:
        return max(0, len(self.steps_ns) - 1)


def epochs_of(spent: Sequence[Spent], loop_id: str) -> Epochs:
    """The epochs of the loop's last training that was seen."""
    stretches = [one for one in spent if one.place.part == "steps" and one.place.loop_id == loop_id]
    if not stretches:
        return Epochs([], [], {})
    fit = stretches[-1].fit
    mine = [one for one in spent if one.fit == fit]
    steps: dict[int, int] = {}
    starts: list[int] = []
    begun: list[int] = []
    over: list[int] = []
    for one in mine:
        if one.place.loop_id != loop_id or one.span is None:
            continue
        if one.place.part == "steps":
            if one.span.id not in steps:
                begun.append(one.start_ns)
                over.append(one.end_ns)
            over[-1] = one.end_ns
            steps[one.span.id] = steps.get(one.span.id, 0) + one.ns
        elif one.place.part == "epoch_start" and one.place.what is None:
            starts.append(one.ns)
    before: dict[Place, int] = {}
    for one in spent:
        if one.fit != fit:
            before[one.place] = before.get(one.place, 0) + one.ns
    others = {one.span for one in stretches if one.fit != fit}
    ends = _undisturbed(_ends(mine, loop_id, begun), mine, list(zip(over, begun[1:], strict=False)))
    return Epochs(list(steps.values()), starts, ends, before, before_count=len(others))


def _ends(mine: Sequence[Spent], loop_id: str, begun: Sequence[int]) -> dict[Place, list[int]]:
    """Times by the place and by the end of an epoch that they lie at, without the last epoch's."""
    count = max(0, len(begun) - 1)
    ends: dict[Place, list[int]] = {}
    for one in mine:
        between = one.place.loop_id == loop_id and _lies_between(one.place)
        number = bisect_right(begun, one.start_ns) - 1
        if between and 0 <= number < count:
            ends.setdefault(one.place, [0] * count)[number] += one.ns
    return ends


def _undisturbed(
    ends: dict[Place, list[int]], mine: Sequence[Spent], gaps: Sequence[tuple[int, int]]
) -> dict[Place, list[int]]:
    """Without the ends of epochs that pipediag's own windows reach into, if others are left.

    What the profiler is on for takes longer, and what trials take the place of is not seen.
    """
    ours = [one for one in mine if one.place == PIPEDIAG]
    kept = [number for number, gap in enumerate(gaps) if _ours_in(ours, *gap) < _MOST_OURS]
    if not kept:
        return ends
    return {place: [times[number] for number in kept] for place, times in ends.items()}


def _ours_in(ours: Sequence[Spent], start_ns: int, end_ns: int) -> float:
    """The part of that time which pipediag took."""
    taken = sum(max(0, min(one.end_ns, end_ns) - max(one.start_ns, start_ns)) for one in ours)
    return taken / (end_ns - start_ns) if end_ns > start_ns else 0.0


def _lies_between(place: Place) -> bool:
    """A wait for a first batch is none of it: where a step asks for that, only the step tells."""
    made = place.part == "epoch_start" and place.what is not None
    return made or place.part in ("epoch_end", "evaluation")
