"""How much time each place of the run took, from the stretches that were spent there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipediag.measures.recorded_windows import blocks_of
from pipediag.measures.run.places import PIPEDIAG, Place, Spent
from pipediag.session.recording import RecordedLoop, Recording


@dataclass
class Amounts:
    """Nanoseconds and stretches by place."""

    ns: dict[Place, int]
    count: Counter[Place]

    def move(self, ns: int, source: Place, target: Place) -> None:
        """Give time of one place to another, as much as is there."""
        moved = max(0, min(ns, self.ns.get(source, 0)))
        if moved:
            self.ns[source] -= moved
            self.ns[target] = self.ns.get(target, 0) + moved


def amounts_of(
    spent: Sequence[Spent], recording: Recording, step_ns: Mapping[str, float]
) -> Amounts:
    """Sums by place, with what hooks can't tell apart divided by the loops' steady steps.

    `step_ns` has the steady step of each training loop, as far as it is known: a call in which a
    function was traced made a step as well, a step that asks for its first batch itself waited for
    it, and steps under the profiler are the script's own.
    """
    amounts = Amounts({}, Counter())
    for one in spent:
        amounts.ns[one.place] = amounts.ns.get(one.place, 0) + one.ns
    for place in {one.place for one in spent}:
        spans = {one.span.id if one.span else None for one in spent if one.place == place}
        amounts.count[place] = len(spans)
    for loop in recording.loops:
        if loop.role == "training" and loop.id in step_ns:
            _settle(amounts, spent, recording, loop, step_ns[loop.id])
    return amounts


def steps_of(loop: RecordedLoop) -> Place:
    """Where the steps of a training loop are."""
    return Place("steps", None, loop.file, loop.line, loop.id)


def starts_of(loop: RecordedLoop) -> Place:
    """Where its waits for an epoch's first batch are."""
    return Place("epoch_start", None, loop.file, loop.line, loop.id)


def waits_in_calls(loop: RecordedLoop, step_ns: float) -> list[int]:
    """Of each epoch but the first, where the step itself asks for its first batch."""
    return [
        max(0, round(seam.first_step_ns - step_ns))
        for seam in loop.epoch_seams
        if seam.first_step_ns is not None
    ]


def _settle(
    amounts: Amounts,
    spent: Iterable[Spent],
    recording: Recording,
    loop: RecordedLoop,
    step_ns: float,
) -> None:
    steps, starts = steps_of(loop), starts_of(loop)
    profiled = sum(len(block.durations_ns) for block in blocks_of(recording, loop, "profile"))
    amounts.move(round(profiled * step_ns), PIPEDIAG, steps)
    compiled = _compiled_in(spent, loop)
    asks_itself = starts not in amounts.ns
    for number, one in enumerate(compiled):
        left = one.ns
        if asks_itself and number == 0:
            waited = min(left, loop.fill_ns or 0)
            amounts.move(waited, one.place, starts)
            left -= waited
        amounts.move(round(min(left, step_ns)), one.place, steps)
    if asks_itself:
        waits = waits_in_calls(loop, step_ns)
        amounts.move(sum(waits), steps, starts)
        amounts.count[starts] = len(waits) + 1
    if recording.environment.keras_backend == "jax" and not compiled and loop.first_step_ns:
        built = Place("compile", "the step of `fit`", loop.file, loop.line)
        amounts.move(round(loop.first_step_ns - step_ns), steps, built)


def _compiled_in(spent: Iterable[Spent], loop: RecordedLoop) -> list[Spent]:
    """First calls within the loop's steps, each with the step that it made."""
    return [
        one
        for one in spent
        if one.place.part == "compile"
        and one.span is not None
        and one.span.kind == "first_call"
        and one.loop_id == loop.id
    ]
