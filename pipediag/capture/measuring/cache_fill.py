"""A first epoch that fills a cache stands for itself alone: steps are measured once it is over."""

from __future__ import annotations

from functools import cached_property

from pipediag.capture.loops.loop import Loop
from pipediag.capture.recorder import Recorder
from pipediag.tensorflow_names import CACHES

_WAITS_NS = 30_000_000_000
"""Own choice: as long as a person waits for a diagnosis without a word; a longer epoch is measured,
and that it was the first one is said."""


class CacheFill:
    """Asked while the loop warms up; knows its pipeline from what was recorded of it."""

    def __init__(self, loop: Loop, recorder: Recorder) -> None:
        self._loop = loop
        self._recorder = recorder

    def awaited(self, elapsed_ns: int) -> bool:
        """Whether the first epoch is still running, others follow, and they will read a cache."""
        first = not self._loop.record.seams and self._epochs > 1
        return first and elapsed_ns < _WAITS_NS and self._reads_a_cache

    @property
    def _epochs(self) -> int:
        """That are planned; 1 where nothing says so."""
        record = self._loop.record
        each = record.keras.epochs if record.keras is not None else None
        return (each or 1) * (record.planned_rounds or 1)

    @cached_property
    def _reads_a_cache(self) -> bool:
        """Looked for once, as steps ask for it."""
        above = self._recorder.recording.upstream(self._loop.record.root_op_id)
        return any(op.kind in CACHES for op in above)
