"""Steps that are interrupted before an epoch is over, as in a loop that predicts in each of them.

A hand-over that follows an evaluation tells of no step, so that the timeline has a stretch for each
of them, with the rest of the step between it and the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pipediag.measures.run.amounts import starts_of, steps_of
from pipediag.measures.run.places import Spent
from pipediag.session.recorded_loops import RecordedLoop

_OFTEN = 0.5
"""Of a loop's steps, from which on interruptions are a part of them. Own choice: what comes every
hundred steps is rather the end of a round."""


def rejoined(spent: Sequence[Spent], loops: Iterable[RecordedLoop]) -> list[Spent]:
    """With the rest of such steps among the steps, and their epoch as one stretch."""
    joined = list(spent)
    for loop in loops:
        # Keras tells of its epochs, whose iterator may be one and the same.
        if loop.role == "training" and loop.kind != "keras":
            joined = _rejoined(joined, loop)
    return joined


def _rejoined(spent: list[Spent], loop: RecordedLoop) -> list[Spent]:
    epochs = _epochs(spent, loop)
    interruptions = sum(len({spent[index].span for index in epoch}) - 1 for epoch in epochs)
    if interruptions < _OFTEN * loop.steps / loop.batches_per_call:
        return spent
    joined = list(spent)
    for epoch in epochs:
        span = spent[epoch[0]].span
        for index in range(epoch[0], epoch[-1] + 1):
            if _is_of_a_step(spent[index], loop):
                joined[index] = replace(
                    spent[index], place=steps_of(loop), span=span, loop_id=loop.id
                )
    return joined


def _epochs(spent: Sequence[Spent], loop: RecordedLoop) -> list[list[int]]:
    """Where the loop's steps are, by the iterator that they come from."""
    epochs: list[list[int]] = [[]]
    for index, one in enumerate(spent):
        if one.span is not None and (one.span.kind, one.span.name) == ("iterator", loop.id):
            epochs.append([])
        elif one.place == steps_of(loop):
            epochs[-1].append(index)
    return [epoch for epoch in epochs if epoch]


def _is_of_a_step(one: Spent, loop: RecordedLoop) -> bool:
    """Whether it is the rest of one, the wait for the next batch, or the steps as they are."""
    rest = one.place.part == "epoch_end" and one.place.what is None
    return (rest and one.place.loop_id == loop.id) or one.place in (steps_of(loop), starts_of(loop))
