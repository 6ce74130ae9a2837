"""Batches that are looked at on their way to a step, or steps of one call, that draw them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.capture.guard import attempt
from pipediag.capture.loops.end_of_data import is_end_of_data
from pipediag.capture.loops.loop import Consumer


class ScriptsOwnError(Exception):
    """The script's data failed, which its call has to hear."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def look_at_next(consumer: Consumer, iterator: Any, note: Callable[[str], None]) -> Any:
    """The iterator to call the step with: of the batches that the step would have drawn.

    Args:
        consumer: whose step it is.
        iterator: the script's.
        note: told of an error of ours, which must not cost the step what was drawn for it.

    Raises:
        ScriptsOwnError: the step would have failed to draw it.
    """
    consumer.stand_in.give_back()
    runtime = consumer.loop.runtime
    batches: list[Any] = []
    try:
        while len(batches) < consumer.loop.record.batches_per_call:
            batches.append(runtime.pull(iterator))
    except Exception as error:
        if not is_end_of_data(error):
            raise ScriptsOwnError(error) from error
        if not batches:
            return iterator  # the call finds that out itself
    once = runtime.handed_once(batches, iterator, consumer.element_spec)
    if consumer.loop.diagnosis is not None:
        looking = consumer.loop.diagnosis.looking
        attempt(note, "looking at batches", looking.batches_drawn, batches)
    return once
