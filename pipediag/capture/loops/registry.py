"""Places in the script that consume batches, and which of them train."""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from pipediag.capture.callsites import CallSite, call_site, frames
from pipediag.capture.frameworks.keras.facts import (
    KerasPhase,
    batch_size_of,
    batches_per_call,
    data_walker,
    describe_fit,
    embedding_tables,
    phase_of,
    planned_steps,
)
from pipediag.capture.frameworks.tensorflow.datasets import options_of
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.recorder import Recorder
from pipediag.session.recording import RecordedLoop
from pipediag.vocabulary import LoopKind

# Own choice: a fit that is less than twice as long is stood for by the one before it.
_MUCH_LONGER = 2

Place = tuple[str | None, int | None, str]
"""File, line and Keras method."""


@dataclass
class LoopRegistry:
    """Finds the loop that a new iterator belongs to.

    Iterators made at one line are one loop, unless two threads are there at once, or a `fit` is
    called there that is much longer than the one before: a first, short call is often a rehearsal.
    """

    recorder: Recorder
    plan: PlanRecorder
    _by_place: dict[Place, list[Loop]] = field(default_factory=dict)
    _loops: list[Loop] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.RLock)

    def all(self) -> list[Loop]:
        """Every loop seen so far."""
        return self._loops

    def consumer_for(self, iterator: Any, dataset: Any, distributed: bool) -> Consumer:
        """Register an iterator that is being made right now, on the current stack."""
        site = call_site()
        phase = phase_of(frames())
        place = (
            site.file if site else None,
            site.line if site else None,
            phase.method if phase else "",
        )
        with self._lock:
            at_place = self._by_place.setdefault(place, [])
            loop = _loop_among(at_place, phase)
            if loop is None:
                loop = self._new_loop(site, phase, distributed)
                at_place.append(loop)
            loop.thread = threading.current_thread()
            loop.record.iterators += 1
        if loop.record.root_op_id is None:
            self._describe_pipeline(loop.record, dataset)
        consumer = Consumer(
            loop=loop,
            ordinal=loop.record.iterators,
            iterator=weakref.ref(iterator),
            element_spec=dataset.element_spec,
            dataset=dataset,
            distributed=distributed,
        )
        consumer.iterator = weakref.ref(iterator, consumer.iterator_gone)
        return consumer

    def new_in_graph_loop(self, dataset: Any, site: CallSite | None) -> Loop:
        """A dataset that a tf.function loops over by itself; no Python iterator exists."""
        with self._lock:
            loop = self._new_loop(site, None, distributed=False)
        loop.thread = threading.current_thread()
        loop.record.kind = "in_graph"
        loop.dataset = dataset
        loop.record.iterators = 1
        self._describe_pipeline(loop.record, dataset)
        return loop

    def _new_loop(self, site: CallSite | None, phase: KerasPhase | None, distributed: bool) -> Loop:
        loops = self.recorder.recording.loops
        kind: LoopKind = "keras" if phase else "distributed" if distributed else "eager"
        record = RecordedLoop(
            id=f"loop{len(loops) + 1}",
            kind=kind,
            role=phase.role if phase else "other",
            role_reason=f"Keras {phase.method}" if phase else "no trainable variable was written",
            file=site.file if site else None,
            line=site.line if site else None,
            function=site.function if site else None,
            root_op_id=None,
            iterators=0,
            steps=0,
            elapsed_ns=0,
            updates_variables=False,
            started_ns=time.monotonic_ns(),
        )
        loops.append(record)
        loop = Loop(
            record,
            ordinal=len(loops) - 1,
            fit_frame=phase.frame if phase and phase.role == "training" else None,
        )
        if loop.fit_frame is not None:
            record.batches_per_call = batches_per_call(loop.fit_frame)
            walker = data_walker(loop.fit_frame)
            loop.fit_walker = weakref.ref(walker) if walker is not None else None
            loop.fit_steps = planned_steps(loop.fit_frame)
        self._loops.append(loop)
        return loop

    def _describe_pipeline(self, record: RecordedLoop, dataset: Any) -> None:
        original = getattr(dataset, "_original_dataset", dataset)
        strategy = getattr(dataset, "_strategy", None)
        record.replicas = strategy.num_replicas_in_sync if strategy is not None else 1
        record.element_spec = str(dataset.element_spec)
        if not hasattr(original, "_inputs"):
            return
        record.root_op_id = self.plan.operation_of(original)
        record.dataset_options = options_of(original)
        record.autotune_enabled = record.dataset_options.get("autotune.enabled") is not False
        record.batch_size = self._batch_size(record.root_op_id)

    def _batch_size(self, op_id: str | None) -> int | None:
        """The batch size of the last batching operation above the consumer."""
        operations = {operation.id: operation for operation in self.recorder.recording.operations}
        while op_id is not None and op_id in operations:
            operation = operations[op_id]
            size = operation.parameters.get("batch_size")
            if isinstance(size, int):
                return size
            op_id = operation.parent_ids[0] if operation.parent_ids else None
        return None

    def describe_keras(self, loop: Loop) -> None:
        """Read the model from the frame of its `fit`, once it has been built by a first step."""
        if loop.fit_frame is None:
            return
        record, frame = loop.record, loop.fit_frame
        loop.fit_frame = None  # a kept frame would keep the whole data set alive
        loop.model = weakref.ref(frame.f_locals["self"])
        try:
            record.keras = describe_fit(frame)
            record.planned_steps = planned_steps(frame) or None
            known = self.recorder.recording.variables
            known.extend(table for table in embedding_tables(frame) if table not in known)
            if record.batch_size is None:
                record.batch_size = batch_size_of(frame)
        except Exception as error:
            self.recorder.note(
                f"The Keras model could not be described: {type(error).__name__}: {error}"
            )


def _loop_among(at_place: list[Loop], phase: KerasPhase | None) -> Loop | None:
    """The loop at this place that a new iterator goes on with, if any."""
    free = [known for known in at_place if not known.runs_elsewhere()]
    if not free:
        return None
    training = phase is not None and phase.role == "training"
    if phase is not None and training and _gives_way(free[-1], phase.frame):
        return None
    return free[-1] if training else free[0]


def _gives_way(loop: Loop, frame: FrameType) -> bool:
    """Whether this `fit` is another call, so much longer that the loop can't stand for it."""
    walker = data_walker(frame)
    known = loop.fit_walker() if loop.fit_walker is not None else None
    if walker is None or walker is known:
        return False
    steps = planned_steps(frame)
    return bool(loop.fit_steps and steps and steps >= _MUCH_LONGER * loop.fit_steps)
