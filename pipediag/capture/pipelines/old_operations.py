"""Recorded operations that no session needs any more: a program of days makes ever new ones.

Each `predict` of an array makes a pipeline of its own, and so may each request that is answered.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pipediag.capture.pipelines.call import MARK
from pipediag.capture.recorder import Recorder
from pipediag.session.recorded_operations import RecordedOperation

MANY = 2_000
"""Own choice: a script that makes its pipelines once has some dozens of operations, and one that
makes them for each epoch some hundreds; this many take a few megabytes."""
_RECENT = MANY // 4
"""The last ones stay, whatever became of them: what they made may be about to be read."""


class OldOperations:
    """Looks through them each time that they have become twice as many."""

    def __init__(self, recorder: Recorder, lock: threading.RLock) -> None:
        """`lock` is held by whoever takes operations away."""
        self._recorder = recorder
        self._lock = lock
        self._look_at = MANY

    def let_go(self, datasets: list[weakref.ref[Any]], made_now: Iterable[str]) -> None:
        """Drop what no loop reads and no dataset that lives stands for, and dead references.

        `datasets` are those that bear the id of an operation, `made_now` operations whose dataset
        is still to come.
        """
        recording = self._recorder.recording
        if len(recording.operations) < self._look_at:
            return
        with self._lock:
            operations = recording.operations[:]  # other threads add theirs meanwhile
            alive = _forget_the_dead(datasets)
            read = (loop.root_op_id for loop in recording.loops)
            recent = (operation.id for operation in operations[-_RECENT:])
            kept = needed(operations, {*alive, *filter(None, read), *recent, *made_now})
            self._recorder.drop_operations({one.id for one in operations} - kept)
            self._look_at = max(MANY, 2 * len(recording.operations))


def needed(operations: Sequence[RecordedOperation], wanted: Iterable[str]) -> set[str]:
    """The ids that are `wanted`, and those of all that their elements come through: what these
    operations read from, what their functions make, and in whose function they were made."""
    by_id = {operation.id: operation for operation in operations}
    inside: dict[str, list[str]] = defaultdict(list)
    for operation in operations:
        if operation.inside_function_of is not None:
            inside[operation.inside_function_of].append(operation.id)
    found: set[str] = set()
    pending = list(wanted)
    while pending:
        op_id = pending.pop()
        known = by_id.get(op_id)
        if known is None or op_id in found:
            continue
        found.add(op_id)
        pending += [*known.parent_ids, *inside[op_id]]
        if known.inside_function_of is not None:
            pending.append(known.inside_function_of)
    return found


def _forget_the_dead(datasets: list[weakref.ref[Any]]) -> set[str]:
    """The ids that those bear which live."""
    seen = len(datasets)  # other threads add theirs meanwhile
    living = [(ref, dataset) for ref in datasets[:seen] if (dataset := ref()) is not None]
    datasets[:seen] = [ref for ref, _ in living]
    return {dataset.__dict__[MARK] for _, dataset in living if MARK in dataset.__dict__}
