"""A first epoch that fills a cache stands for itself alone: steps are measured once it is over."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePath

from pipediag.capture.loops.loop import Loop
from pipediag.capture.recorder import Recorder
from pipediag.session.recorded_operations import RecordedOperation

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
        keras = self._loop.record.keras
        if self._loop.record.seams or keras is None or (keras.epochs or 1) < 2:
            return False
        cache = self._cache
        if cache is None:
            return False
        if elapsed_ns < _WAITS_NS:
            return True
        name = PurePath(cache.file).name if cache.file else "its cache"
        self._recorder.note(
            f"What was measured is the first epoch, which fills the cache at {name}:{cache.line}: "
            "it had not ended in time. Later epochs read that cache, and may be faster."
        )
        return False

    @cached_property
    def _cache(self) -> RecordedOperation | None:
        """The nearest cache above the loop; looked for once, as steps ask for it."""
        above = self._recorder.recording.upstream(self._loop.record.root_op_id)
        return next((op for op in above if op.kind == "cache"), None)
