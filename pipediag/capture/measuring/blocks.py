"""Ends the blocks of a loop's windows, with what tf.data has measured of their steps."""

from __future__ import annotations

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.open_window import OpenWindow
from pipediag.capture.measuring.snapshots import Snapshots
from pipediag.capture.measuring.stock import Stock
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import IteratorModel


class Blocks:
    """Of one loop. Where a block ends by itself the pipeline's model is read and kept, which takes
    a few milliseconds."""

    def __init__(self, loop: Loop, recorder: Recorder) -> None:
        self._loop = loop
        self._snapshots = Snapshots(recorder)
        self._stock = Stock()

    def begin(self, consumer: Consumer) -> None:
        """The window without a profiler begins."""
        measured = self._loop.measured(consumer)
        self._stock.begin(self._snapshots.take(self._loop, measured), measured.batches)

    def end(self, window: OpenWindow, consumer: Consumer) -> None:
        """A block of that window is long enough."""
        self._end(window, consumer, self._loop.measured(consumer))

    def end_last(self, window: OpenWindow, consumer: Consumer) -> bool:
        """So is the window; returns whether it lived on a stock of ready batches."""
        measured = self._loop.measured(consumer)
        model = self._end(window, consumer, measured)
        return self._stock.used_up(model, measured.batches)

    def interrupted(self, window: OpenWindow, consumer: Consumer, exhausted: bool) -> None:
        """Something else follows than a step: the iterator may have no more batches."""
        self._close(
            window,
            self._loop.runtime.model_of(consumer.iterator()),
            unfinished=1 if exhausted else 0,
            last_gap_unknown=exhausted and consumer.hand_over == "call",
        )

    def _end(
        self, window: OpenWindow, consumer: Consumer, measured: Consumer
    ) -> IteratorModel | None:
        model = self._snapshots.take(self._loop, measured)
        # A step that begins by a call has not asked for its batch yet.
        self._close(window, model, last_gap_unknown=consumer.hand_over == "call")
        return model

    def _close(
        self,
        window: OpenWindow,
        model: IteratorModel | None,
        *,
        unfinished: int = 0,
        last_gap_unknown: bool,
    ) -> None:
        """With tf.data's gap times, but where they hold the waits for another iterator."""
        window.close_block(
            None if self._loop.joined else model,
            unfinished,
            self._loop.record.batches_per_call,
            last_gap_unknown=last_gap_unknown,
        )
