"""A window while it is being measured: steps in blocks, written to the journal as they come."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pipediag.capture.journal import StepJournal
from pipediag.capture.runtime import IteratorModel
from pipediag.session.recorded_windows import RecordedBlock, RecordedWindow
from pipediag.session.recording import Recording
from pipediag.vocabulary import WindowKind


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
    def begin(
        cls, kind: WindowKind, loop_id: str, loop: int, recording: Recording, journal: StepJournal
    ) -> OpenWindow:
        """Open a window and enter it in the recording, marked incomplete until it is closed."""
        now = time.monotonic_ns()
        record = RecordedWindow(kind, loop_id, now, now, complete=False)
        recording.windows.append(record)
        return cls(record, journal, loop, ordinal=len(recording.windows) - 1)

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

        `unfinished`: gaps at the end of tf.data's list whose step was not recorded.
        `last_gap_unknown`: whether the last step has gaps to come.
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
        """Every step so far, in order."""
        return [d for block in (*self.record.blocks, self.block) for d in block.durations_ns]

    def spans_ns(self) -> list[tuple[int, int]]:
        """Begin and end of each block so far, the open one among them."""
        blocks = [block for block in (*self.record.blocks, self.block) if block.starts_ns]
        return [
            (block.starts_ns[0], block.starts_ns[-1] + block.durations_ns[-1]) for block in blocks
        ]

    def elapsed_ns(self, now_ns: int) -> int:
        return now_ns - self.record.start_ns

    def block_elapsed_ns(self) -> int:
        return sum(self.block.durations_ns)

    def close(self, complete: bool, reason: str | None = None) -> None:
        """End the window; its last block is kept without gap times if it is still open."""
        self.close_block(None, 0, 1)
        self.record.complete = complete
        self.record.reason = reason
