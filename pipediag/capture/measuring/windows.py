"""A window while it is measured, in blocks that hold what tf.data measured of their steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.pace import Pace
from pipediag.capture.measuring.profiler import Profiler
from pipediag.capture.recorder import Description, Recorder, StepJournal
from pipediag.capture.runtime import IteratorModel
from pipediag.capture.timeline import Timeline
from pipediag.session.messages import FromChild
from pipediag.session.recording import ModelNode, ModelSnapshot, RecordedBlock, RecordedWindow
from pipediag.vocabulary import WindowKind


@dataclass
class Instruments:
    """Shared by all loops of the run."""

    recorder: Recorder
    journal: StepJournal
    profiler: Profiler
    pace: Pace
    state: KeptState
    timeline: Timeline
    tell: Callable[[FromChild], None]
    running_pipelines: Callable[[], list[Any]] = list
    """Handles of running pipelines, to be kept until the process is gone."""
    descriptions: Sequence[Description] = ()
    """Functions that describe each framework."""


@dataclass
class OpenWindow:
    """Collects steps; a block is a run of steps that nothing came between."""

    record: RecordedWindow
    journal: StepJournal
    loop: int
    ordinal: int
    count: int = 0
    block: RecordedBlock = field(default_factory=RecordedBlock)

    @classmethod
    def begin(cls, kind: WindowKind, loop: Loop, instruments: Instruments) -> OpenWindow:
        """Open a window and enter it in the recording, marked incomplete until it is closed."""
        now, windows = time.monotonic_ns(), instruments.recorder.recording.windows
        record = RecordedWindow(kind, loop.record.id, now, now, complete=False)
        windows.append(record)
        return cls(record, instruments.journal, loop.ordinal, ordinal=len(windows) - 1)

    def add(self, start_ns: int, duration_ns: int, wait_ns: int | None, batches: int) -> None:
        """Note one step."""
        block = self.block
        block.starts_ns.append(start_ns)
        block.durations_ns.append(duration_ns)
        if wait_ns is not None:
            block.waits_ns.append(wait_ns)
        self.count += 1
        self.record.end_ns = start_ns + duration_ns
        self.journal.append(self.loop, self.ordinal, start_ns, duration_ns, wait_ns or 0, batches)

    def close_block(
        self,
        model: IteratorModel | None,
        unfinished: int,
        batches_per_call: int,
        *,
        last_gap_unknown: bool = False,
    ) -> None:
        """End the block with the gap times that belong to its steps.

        So many gaps at the end of tf.data's list are `unfinished`, as their step was not recorded.
        """
        block, self.block = self.block, RecordedBlock()
        if not block.durations_ns:
            return
        if model is not None:
            gaps = model.gaps_us[: len(model.gaps_us) - unfinished]
            block.gaps_us = gaps[-len(block.durations_ns) * batches_per_call :]
            block.last_gap_unknown = last_gap_unknown
        self.record.blocks.append(block)

    def durations(self) -> list[int]:
        """Return the duration of every step so far, in order."""
        return [d for block in (*self.record.blocks, self.block) for d in block.durations_ns]

    def spans_ns(self) -> list[tuple[int, int]]:
        """Return begin and end of each block so far, the open one among them."""
        blocks = [block for block in (*self.record.blocks, self.block) if block.starts_ns]
        return [
            (block.starts_ns[0], block.starts_ns[-1] + block.durations_ns[-1]) for block in blocks
        ]

    def elapsed_ns(self, now_ns: int) -> int:
        return now_ns - self.record.start_ns

    def close(self, complete: bool, reason: str | None = None) -> None:
        """End the window; its last block is kept without gap times if it is still open."""
        self.close_block(None, 0, 1)
        self.record.complete = complete
        self.record.reason = reason


_DRAINED_SHARE = 0.2
"""Own choice: where one batch in five came from the stock, its pace is not the pipeline's."""

_MOST_DRAINS = 3
_BUFFERS = ("Prefetch", "ParallelMap", "MapAndBatch", "ParallelBatch")


class Stock:
    """Compares the buffers at a window's begin and at its end."""

    def __init__(self) -> None:
        self._before: IteratorModel | None = None
        self._drains = 0

    def begin(self, model: IteratorModel | None) -> None:
        """Begin a window."""
        self._before = model

    def used_up(self, model: IteratorModel | None) -> bool:
        """Return True if the window that ends lived on a stock: another one begins in its place.

        A pipeline whose stock goes on to shrink is taken as it is, after three such windows.
        """
        if self._drains == _MOST_DRAINS or model is None or self._before is None:
            return False
        if not _drained(self._before.nodes, model.nodes):
            return False
        self._drains += 1
        self.begin(model)
        return True


def _drained(before: list[ModelNode], after: list[ModelNode]) -> bool:
    """Return True if a buffer has shrunk by a part of what it handed out, even one further up."""
    was = {(node.id, node.name): node for node in before if node.name.startswith(_BUFFERS)}
    for node in after:
        known = was.get((node.id, node.name))
        if known is not None and node.num_elements > known.num_elements:
            shrunk = known.buffered_elements - node.buffered_elements
            if shrunk > _DRAINED_SHARE * (node.num_elements - known.num_elements):
                return True
    return False


class Blocks:
    """Blocks of one loop's windows.

    Where one ends by itself the pipeline's model is read and kept, in a few milliseconds.
    """

    def __init__(self, loop: Loop, recorder: Recorder) -> None:
        self._loop = loop
        self._recorder = recorder
        self._stock = Stock()

    def begin(self, consumer: Consumer) -> None:
        """Note the buffers with which the window without a profiler begins."""
        self._stock.begin(self._snapshot(consumer))

    def end(self, window: OpenWindow, consumer: Consumer) -> IteratorModel | None:
        """End a block that is long enough; return the pipeline's model."""
        model = self._snapshot(consumer)
        # A step that begins by a call has not asked for its batch yet.
        self._close(window, model, 0, last_gap_unknown=consumer.hand_over == "call")
        return model

    def end_last(self, window: OpenWindow, consumer: Consumer) -> bool:
        """End the window's last block; return True if it lived on a stock of ready batches."""
        return self._stock.used_up(self.end(window, consumer))

    def interrupted(self, window: OpenWindow, consumer: Consumer, exhausted: bool) -> None:
        """End a block that something else than a step follows, maybe the end of the data."""
        model = self._loop.runtime.model_of(consumer.iterator())
        unknown = exhausted and consumer.hand_over == "call"
        self._close(window, model, int(exhausted), last_gap_unknown=unknown)

    def _snapshot(self, consumer: Consumer) -> IteratorModel | None:
        """Record the pipeline's model, if it has one, and return it; two of them give rates."""
        loop, measured = self._loop, self._loop.measured(consumer)
        model = loop.runtime.model_of(measured.iterator())
        if model is not None:
            self._recorder.recording.snapshots.append(
                ModelSnapshot(
                    loop_id=loop.record.id,
                    iterator=measured.ordinal,
                    at_ns=time.monotonic_ns(),
                    steps=loop.record.steps,
                    iterator_steps=measured.batches,
                    nodes=model.nodes,
                    output_id=model.output_id,
                )
            )
        elif loop.runtime.no_models is not None:
            self._recorder.note(loop.runtime.no_models)
        return model

    def _close(
        self,
        window: OpenWindow,
        model: IteratorModel | None,
        unfinished: int,
        *,
        last_gap_unknown: bool,
    ) -> None:
        # Gap times of a loop with several iterators hold waits for the others.
        model = None if self._loop.joined else model
        batches = self._loop.record.batches_per_call
        window.close_block(model, unfinished, batches, last_gap_unknown=last_gap_unknown)
