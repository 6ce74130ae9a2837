"""One batch that is handed out again and again, where the consumer alone is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.capture.loops.end_of_data import is_end_of_data
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.signal_handlers import let_pass

Note = Callable[[str], None]


def repeat(consumer: Consumer, batch: Any, note: Note) -> None:
    """Hand out this batch from now on."""
    try:
        runtime = consumer.loop.runtime
        consumer.stand_in.caught(runtime.repeated(batch, consumer.element_spec))
    except Exception as error:
        let_pass(error)
        consumer.stand_in.caught(None)
        note(
            "The consumer could not be measured on a repeated batch: "
            f"{type(error).__name__}: {error}"
        )


def repeat_next(consumer: Consumer, iterator: Any, note: Note) -> None:
    """Take the batch that a call would have taken, and hand it out from now on."""
    try:
        batch = consumer.loop.runtime.pull(iterator)
    except Exception as error:
        if is_end_of_data(error):
            return  # the call finds that out itself
        raise
    if consumer.loop.record.batch_size is None:
        consumer.loop.record.batch_size = consumer.loop.runtime.rows(batch)
    repeat(consumer, batch, note)
