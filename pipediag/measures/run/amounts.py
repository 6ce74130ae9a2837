"""How much time each place of the run took, from the stretches that were spent there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipediag.measures.recorded_windows import blocks_of
from pipediag.measures.run.places import PIPEDIAG, Place, Spent
from pipediag.session.recording import RecordedLoop, Recording
from pipediag.vocabulary import SpanKind

_LONG: frozenset[SpanKind] = frozenset({"script", "fit"})
"""What lies in these and in nothing else is not one thing that comes again."""


@dataclass
class Amounts:
    """Nanoseconds by place, and how often what is there came, where that is known."""

    ns: dict[Place, int]
    count: dict[Place, int]

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
    amounts = Amounts({}, {})
    spans: dict[Place, set[int]] = {}
    for one in spent:
        amounts.ns[one.place] = amounts.ns.get(one.place, 0) + one.ns
        if one.span is not None and one.span.kind not in _LONG:
            spans.setdefault(one.place, set()).add(one.span.id)
    amounts.count.update((place, len(ids)) for place, ids in spans.items())
    for loop in recording.loops:
        if steps_of(loop) in amounts.count:
            amounts.count[steps_of(loop)] = loop.steps // loop.batches_per_call
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
    if loop.kind != "in_graph":  # whose steps under the profiler stay where they are
        profiled = sum(len(block.durations_ns) for block in blocks_of(recording, loop, "profile"))
        amounts.move(round(profiled * step_ns), PIPEDIAG, steps)
    compiled = _compiled_in(spent, loop)
    asks_itself = starts not in amounts.ns
    for number, (place, left) in enumerate(compiled):
        waited = min(left, loop.fill_ns or 0) if asks_itself and number == 0 else 0
        amounts.move(waited, place, starts)
        amounts.move(round(min(left - waited, step_ns)), place, steps)
    if asks_itself:
        waits = waits_in_calls(loop, step_ns)
        amounts.move(sum(waits), steps, starts)
        amounts.count[starts] = len(waits) + 1
    if recording.environment.keras_backend == "jax" and not compiled and loop.first_step_ns:
        built = Place("compile", "the step of `fit`", loop.file, loop.line)
        amounts.move(round(loop.first_step_ns - step_ns), steps, built)


def _compiled_in(spent: Iterable[Spent], loop: RecordedLoop) -> list[tuple[Place, int]]:
    """First calls within the loop's steps, each with the step that it made.

    What pipediag took in the middle of one leaves two stretches of it.
    """
    calls: dict[int, tuple[Place, int]] = {}
    for one in spent:
        if one.span is None or one.span.kind != "first_call" or one.loop_id != loop.id:
            continue
        _, ns = calls.get(one.span.id, (one.place, 0))
        calls[one.span.id] = one.place, ns + one.ns
    return list(calls.values())
