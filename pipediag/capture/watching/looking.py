"""A batch that is looked at on its way to a step which draws it itself."""

from __future__ import annotations

from typing import Any

from pipediag.capture.loops.end_of_data import is_end_of_data
from pipediag.capture.loops.loop import Consumer


class ScriptsOwnError(Exception):
    """The script's data failed, which its call has to hear."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def look_at_next(consumer: Consumer, iterator: Any) -> Any:
    """The iterator to call the step with: of the one batch that the step would have drawn.

    Raises:
        ScriptsOwnError: the step would have failed to draw it.
    """
    consumer.stand_in.give_back()
    runtime = consumer.loop.runtime
    try:
        batch = runtime.pull(iterator)
    except Exception as error:
        if is_end_of_data(error):
            return iterator  # the call finds that out itself
        raise ScriptsOwnError(error) from error
    once = runtime.handed_once(batch, iterator, consumer.element_spec)
    if consumer.loop.diagnosis is not None:
        consumer.loop.diagnosis.looking.batch_drawn(batch)
    return once
