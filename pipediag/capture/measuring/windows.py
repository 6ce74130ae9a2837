"""A window while it is measured, in blocks that hold what tf.data measured of their steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.pace import Pace
from pipediag.capture.measuring.profiler import Profiler
from pipediag.capture.recorder import Description, Recorder
from pipediag.capture.runtime import IteratorModel, Runtime
from pipediag.capture.timeline import Timeline
from pipediag.session.messages import FromChild
from pipediag.session.recording import ModelSnapshot, RecordedBlock, RecordedWindow
from pipediag.vocabulary import WindowKind


@dataclass
class Instruments:
    recorder: Recorder
    profiler: Profiler
    pace: Pace
    state: KeptState
    timeline: Timeline
    runtime: Runtime
    tell: Callable[[FromChild], None]
    running_pipelines: Callable[[], list[Any]] = list
    """Handles of running pipelines, to be kept until the process is gone."""
    descriptions: Sequence[Description] = ()


class Window:
    """Collects steps; a block is a run of steps that nothing came between.

    Where a block ends by itself the pipeline's model is read and kept, in a few milliseconds.
    """

    def __init__(self, kind: WindowKind, loop: Loop, instruments: Instruments) -> None:
        """Open a window and enter it in the recording, marked incomplete until it is closed."""
        now, self._recording = time.monotonic_ns(), instruments.recorder.recording
        self._loop = loop
        self._with = instruments
        self.record = RecordedWindow(kind, loop.record.id, now, now, complete=False)
        self._recording.windows.append(self.record)
        self.count = 0
        self.block = RecordedBlock()

    def add(self, start_ns: int, duration_ns: int, wait_ns: int | None) -> None:
        block = self.block
        block.starts_ns.append(start_ns)
        block.durations_ns.append(duration_ns)
        if wait_ns is not None:
            block.waits_ns.append(wait_ns)
        self.count += 1
        self.record.end_ns = start_ns + duration_ns

    def end_block(self, consumer: Consumer) -> IteratorModel | None:
        model = self.snapshot(consumer)
        # A step that begins by a call has not asked for its batch yet.
        self.close_block(model, last_gap_unknown=consumer.hand_over == "call")
        return model

    def interrupted(self, consumer: Consumer, exhausted: bool) -> None:
        """End a block that something else than a step follows, maybe the end of the data."""
        if self.block.durations_ns:
            model = self._loop.runtime.model_of(consumer.iterator())
            unknown = exhausted and consumer.hand_over == "call"
            self.close_block(model, int(exhausted), last_gap_unknown=unknown)

    def close_block(
        self,
        model: IteratorModel | None = None,
        unfinished: int = 0,
        *,
        last_gap_unknown: bool = False,
    ) -> None:
        """End the block with the gap times of its steps, without the last `unfinished` ones."""
        block, self.block = self.block, RecordedBlock()
        if not block.durations_ns:
            return
        # Gap times of a loop with several iterators hold waits for the others.
        if model is not None and not self._loop.joined:
            gaps = model.gaps_us[: len(model.gaps_us) - unfinished]
            block.gaps_us = gaps[-len(block.durations_ns) * self._loop.record.batches_per_call :]
            block.last_gap_unknown = last_gap_unknown
        self.record.blocks.append(block)

    def snapshot(self, consumer: Consumer) -> IteratorModel | None:
        """Record the pipeline's model, if it has one, and return it; two of them give rates."""
        loop, measured = self._loop, self._loop.measured(consumer)
        model = loop.runtime.model_of(measured.iterator())
        if model is not None:
            self._recording.snapshots.append(
                ModelSnapshot(
                    loop_id=loop.record.id,
                    iterator=measured.ordinal,
                    iterator_steps=measured.batches,
                    nodes=model.nodes,
                    output_id=model.output_id,
                )
            )
        elif loop.runtime.no_models is not None:
            self._with.recorder.note(loop.runtime.no_models)
        return model

    def spans_ns(self) -> list[tuple[int, int]]:
        """Return begin and end of each block so far, the open one among them."""
        return [
            (block.starts_ns[0], block.starts_ns[-1] + block.durations_ns[-1])
            for block in (*self.record.blocks, self.block)
            if block.starts_ns
        ]

    def steps_ns(self) -> int:
        return sum(sum(block.durations_ns) for block in (*self.record.blocks, self.block))

    def close(self, reason: str | None = None) -> None:
        """End the window, which is complete unless there is a reason why not; its last block is
        kept without gap times if it is still open."""
        self.close_block()
        self.record.complete = reason is None
        self.record.reason = reason


_DRAINED_SHARE = 0.2
"""Own choice: where one batch in five came from the stock, its pace is not the pipeline's."""
_BUFFERS = ("Prefetch", "ParallelMap", "MapAndBatch", "ParallelBatch")


def lived_on_a_stock(before: IteratorModel | None, after: IteratorModel | None) -> bool:
    """Return True if a buffer has shrunk by a part of what it handed out, even one further up."""
    if before is None or after is None:
        return False
    was = {(node.id, node.name): node for node in before.nodes if node.name.startswith(_BUFFERS)}
    for node in after.nodes:
        known = was.get((node.id, node.name))
        if known is not None and node.num_elements > known.num_elements:
            shrunk = known.buffered_elements - node.buffered_elements
            if shrunk > _DRAINED_SHARE * (node.num_elements - known.num_elements):
                return True
    return False
