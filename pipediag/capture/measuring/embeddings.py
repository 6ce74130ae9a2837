"""The embedding tables of a loop, and a few of its batches that tell by which ids they are used.

These are batches that the script's step is given anyway; none is drawn for this. They are read
between two windows, so that no step is timed meanwhile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pipediag.capture.loops.loop import Consumer, Loop, Stage
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.process import let_pass
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import StepTable, StepTables, UnreadableStepError
from pipediag.session.recorded_loops import EmbeddingIds, RecordedVariable

_MOST_BATCHES = 32

_NO_BATCH = "No batch was seen whose ids could be read, before the loop ended or gave no more."
_SEVERAL_DRAWS = (
    "A call of the step may draw several batches, or from several iterators, so no ids were read."
)
_SPREAD = "Each replica has a part of its batches, so no ids were read."


@dataclass
class _Counted:
    """A table of the step, and the ids that are counted of it."""

    table: StepTable
    record: RecordedVariable
    tally: IdTally | None = None
    """Ids that were counted; None where they are not known."""


class Embeddings:
    """Reads the tables of one loop from its step, and counts the ids of batches that it draws."""

    def __init__(self, loop: Loop, instruments: Instruments) -> None:
        self._loop = loop
        self._with = instruments
        self._recording = instruments.recorder.recording
        self._step: StepTables | None = None
        self._read = False
        """True once the tables were read, or could not be."""
        self._tables: list[_Counted] = []
        self._batches = 0
        self._began_ns = 0

    def begin(self, consumer: Consumer) -> bool:
        """Read the tables; return False if no batch would tell anything of them."""
        self._read_tables(lambda: self._lack(consumer))
        self._began_ns = time.monotonic_ns()
        return self.goes_on(self._began_ns, None)

    def goes_on(self, now_ns: int, left: int | None) -> bool:
        """Note the end of a step; return True if another batch is to be read."""
        elapsed_ns = now_ns - self._began_ns
        enough = self._with.pace.enough("ids", self._batches, elapsed_ns, left)
        if enough or not self._wants_batches:
            self.end()
        return self._wants_batches

    def batch_drawn(self, batch: Any) -> None:
        """Count the ids of a batch that the step is about to draw."""
        self._count(lambda step: step.of_batch(batch))

    def function_called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count the ids of a call in a step, which may be the step with its batch."""
        self._count(lambda step: step.of_call(function, args, kwargs))

    def end(self, lack: str = _NO_BATCH) -> None:
        """Record what was counted, or by `lack` why nothing was, and let the ids go."""
        self._read_tables(lambda: lack)
        for one in self._tables:
            record, tally = one.record, one.tally
            if tally is not None and tally.record.lookups:
                record.ids = tally.record
            elif record.ids_missing is None:
                record.ids_missing = lack
        self._tables.clear()
        self._step = None

    @property
    def _wants_batches(self) -> bool:
        known = any(one.tally is not None for one in self._tables)
        return known and self._batches < _MOST_BATCHES

    def _read_tables(self, lack_of: Callable[[], str | None]) -> None:
        """Read the tables from the step as it was traced, once."""
        if self._read:
            return
        self._read = True
        record, known = self._loop.record, self._known_tables()
        functions = [one for ref in self._loop.step_functions if (one := ref()) is not None]
        try:
            self._step = step = self._loop.runtime.step_tables(functions)
        except Exception as error:
            let_pass(error)
            reason = str(error)
            if not isinstance(error, UnreadableStepError):
                reason = f"The step could not be read: {type(error).__name__}: {error}."
            record.tables_missing = reason
            for _, own_record in known:
                missing = self._recording.table(own_record)
                missing.use_missing = missing.ids_missing = reason
            return
        record.vocabulary_operations = list(step.vocabulary_operations)
        record.metric_operations = list(step.metric_operations)
        record.softmaxes = list(step.softmaxes)
        record.constant_bytes = step.constant_bytes
        lack = lack_of()
        for table in step.tables:
            counted = _Counted(table, self._record_of(table, known))
            self._tables.append(counted)
            if table.ids_missing is not None or lack is not None:
                counted.record.ids_missing = table.ids_missing or lack
                continue
            counted.tally = tally = IdTally(counted.record.rows, table.cast_through)
            tally.record.incomplete = table.ids_incomplete

    def _record_of(
        self, table: StepTable, known: list[tuple[Any, RecordedVariable]]
    ) -> RecordedVariable:
        """Return the trainer's record of the same variable, or else one of the step's own."""
        like = next((own for one, own in known if one is table.variable), table.record)
        record = self._recording.table(like)
        number = 1
        # Variables without a name of their own, as in a list, are distinguished by their order.
        while any(record is other.record for other in self._tables):
            number += 1
            record = self._recording.table(replace(like, layer=f"{like.layer} #{number}"))
        record.tell_anew(like)
        record.use = table.use
        if table.softmax is not None and record.path is not None:
            table.softmax.weights = record.path
        record.loop_id = self._loop.record.id
        return record

    def _lack(self, consumer: Consumer) -> str | None:
        if consumer.distributed:
            return _SPREAD
        if consumer.hand_over != "call":
            return None
        one_batch = self._step is not None and self._step.draws_one_batch()
        if self._loop.record.batches_per_call > 1 or not one_batch:
            return _SEVERAL_DRAWS
        return self._loop.runtime.not_handed_once(consumer.iterator(), consumer.element_spec)

    def _known_tables(self) -> list[tuple[Any, RecordedVariable]]:
        model, trainer = self._loop.model and self._loop.model(), self._loop.trainer
        found: list[tuple[Any, RecordedVariable]] = []
        if trainer is not None and model is not None:
            asking = "asking the layers of a model for their tables"
            ask = trainer.known_tables
            self._with.recorder.attempt(asking, lambda: found.extend(ask(model)))
        return found

    def _count(self, given_by: Callable[..., Any]) -> None:
        """Count ids in the middle of a step, and take the time out of the script's."""
        counted = [(one.table, one.tally) for one in self._tables if one.tally is not None]
        if self._step is None or not counted:
            return
        began_ns = time.monotonic_ns()
        try:
            given = given_by(self._step)
            for table, tally in counted:
                if given is not None and table.answers(given):
                    tally.add(self._loop.record.steps, table.looked_up(given))
            self._batches += given is not None
        except Exception as error:
            let_pass(error)
            known = isinstance(error, UnreadableStepError)
            what = f"The ids of a batch could not be computed: {type(error).__name__}."
            self.end(str(error) if known else what)
        ended_ns = time.monotonic_ns()
        self._loop.set_aside(ended_ns - began_ns)
        self._with.timeline.passed("aside", began_ns, ended_ns)


def read_next(consumer: Consumer, iterator: Any, recorder: Recorder) -> Any:
    """Read the batch that the step would have drawn, and return an iterator that hands it out.

    An error of ours costs the step no batch.
    """
    loop = consumer.loop
    consumer.hand_out(Stage.OWN)
    for batch in consumer.draw(iterator):
        iterator = loop.runtime.handing_out(batch, consumer.element_spec, times=1)
        if loop.diagnosis is not None:
            drawn = loop.diagnosis.embeddings.batch_drawn
            recorder.attempt("reading the ids of a batch", drawn, batch)
    return iterator


_EXAMPLES = 5


class IdTally:
    """Counts the ids of one table, and keeps none but as an example.

    NumPy is there, as TensorFlow has it.
    """

    def __init__(self, rows: int, through: str | None = None) -> None:
        self._np: Any = sys.modules["numpy"]
        self._rows = rows
        self._zeros = self._unique = 0
        self.record = EmbeddingIds(
            batches=0,
            first_batch=0,
            last_batch=0,
            lookups=0,
            unique_per_step=0.0,
            cast_through=through,
        )

    def add(self, batch: int, looked_up: list[Any]) -> None:
        """Count the ids of each lookup in a batch."""
        np, record = self._np, self.record
        ids = np.concatenate([one.ravel() for one in looked_up])
        if not len(ids):
            return
        record.first_batch = record.first_batch or batch
        record.last_batch = batch
        record.batches += 1
        record.lookups += len(ids)
        self._unique += len(np.unique(ids))
        self._zeros += int((ids == 0).sum())
        record.unique_per_step = self._unique / record.batches
        record.zero_percent = 100 * self._zeros / record.lookups
        outside = ids[(ids < 0) | (ids >= self._rows)]
        record.outside += len(outside)
        examples = [(batch, int(one)) for one in np.unique(outside)[:_EXAMPLES]]
        record.outside_examples = [*record.outside_examples, *examples][:_EXAMPLES]
        record.zeros_within += sum(map(self._zeros_within, looked_up))

    def _zeros_within(self, ids: Any) -> int:
        if ids.ndim < 2 or ids.shape[-1] < 2:
            return 0
        np = self._np
        used = ids.reshape(-1, ids.shape[-1]) != 0
        before = np.logical_or.accumulate(used, axis=1)
        behind = np.logical_or.accumulate(used[:, ::-1], axis=1)[:, ::-1]
        return int((~used & before & behind).sum())
