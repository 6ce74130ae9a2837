"""The embedding tables of a loop, and a few of its batches that tell by which ids they are used.

These are batches that the script's step is given anyway; none is drawn for this. They are looked at
between two windows, so that no step is timed meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pipediag.capture.loops.loop import Consumer, Loop, StandIn
from pipediag.capture.measuring.ids import IdTally
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import (
    KnownTable,
    StepTable,
    StepTables,
    Trainer,
    UnreadableStepError,
    Vocabulary,
)
from pipediag.capture.signals import let_pass
from pipediag.session.recorded_loops import RecordedVariable

_Told = TypeVar("_Told")

_MOST_BATCHES = 32
_MOST_LOOKUPS = 4_000_000
"""Own choice: ids of all tables together, which take 32 MB until they are counted."""

_NO_BATCH = "The loop ended before a batch could be looked at."
_NOT_TOLD = "No step that was looked at received its batch in a form that shows the ids."
_SEVERAL_DRAWS = (
    "A call of the step draws several batches, or from several iterators, so none was looked at."
)
_SPREAD = "Each replica has a part of its batches, of which none is looked at."


@dataclass
class _Counted:
    """A table of the step, and the ids that are counted of it."""

    table: StepTable
    record: RecordedVariable
    tally: IdTally | None = None
    """None where the ids can't be told."""
    zero_is_a_token: bool | None = None


class TableWatch:
    """Reads the tables of one loop from its steps, and counts the ids of batches it is shown."""

    def __init__(self, loop: Loop, recorder: Recorder) -> None:
        self._loop = loop
        self._recorder = recorder
        self._step: StepTables | None = None
        self._tables: list[_Counted] = []
        self._any_step = False
        """True if one ended since batches are looked at."""
        self.seen = 0
        """Batches so far."""

    @property
    def wants_batches(self) -> bool:
        """Return True if another batch would tell more."""
        tallies = self._tallies
        looked_up = sum(tally.lookups for _, tally in tallies)
        return bool(tallies) and self.seen < _MOST_BATCHES and looked_up < _MOST_LOOKUPS

    @property
    def _tallies(self) -> list[tuple[_Counted, IdTally]]:
        """Return the tables whose ids are counted."""
        return [(one, one.tally) for one in self._tables if one.tally is not None]

    def begin(self, consumer: Consumer | None, lack: str = _NO_BATCH) -> None:
        """Read the tables from the step as it was traced.

        Without a consumer no batch follows, for the reason that `lack` says.
        """
        functions = [one for ref in self._loop.step_functions if (one := ref()) is not None]
        self._read(functions)
        if self._step is not None:
            self._expect_ids(lack if consumer is None else self._lack(consumer))

    def step_ended(self) -> None:
        """Note that a step of those that are looked at is over."""
        self._any_step = True

    def _read(self, functions: Sequence[Any]) -> None:
        known = self._known()
        try:
            self._step = self._loop.runtime.step_tables(functions)
        except UnreadableStepError as lack:
            self._nothing_read(known, str(lack))
            return
        except Exception as error:
            let_pass(error)
            self._nothing_read(known, f"The step could not be read: {type(error).__name__}.")
            self._recorder.note(
                f"The embedding tables of a step could not be read: {type(error).__name__}: {error}"
            )
            return
        self._loop.record.vocabulary_operations = list(self._step.vocabulary_operations)
        self._loop.record.softmaxes = list(self._step.softmaxes)
        self._loop.record.constant_bytes = self._step.constant_bytes
        for table in self._step.tables:
            self._tables.append(_Counted(table, self._record_of(table, known)))

    def handed_over(self, batches: Sequence[Any]) -> None:
        """Count the ids of batches that the step, or the steps of one call, are about to draw."""
        record = self._loop.record
        first = record.steps - record.batches_per_call + 1
        for number, batch in enumerate(batches, first):
            self._look(number, lambda step, batch=batch: step.of_batch(batch))

    def called(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> None:
        """Count the ids of a call at the script's own level, which may be the step."""
        self._look(self._loop.record.steps, lambda step: step.of_call(function, args, kwargs))

    def end(self) -> None:
        """Write down what was counted, and let the ids go."""
        for one, tally in self._tallies:
            record = one.record
            if tally.lookups:
                record.ids = tally.recorded()
                record.ids.incomplete = one.table.ids_incomplete
                record.ids.zero_is_a_token = one.zero_is_a_token
            elif record.ids_missing is None:
                record.ids_missing = self._why_none()
        self._tables.clear()
        self._step = None

    def _why_none(self) -> str:
        return _NOT_TOLD if self._any_step else _NO_BATCH

    def _look(self, number: int, given_by: Any) -> None:
        tallies = self._tallies
        if self._step is None or not tallies:
            return
        try:
            given = given_by(self._step)
            if given is None:
                return
            looked_up = [
                (tally, one.table.looked_up(given))
                for one, tally in tallies
                if one.table.answers(given)
            ]
            for tally, found in looked_up:
                tally.add(number, found)
        except Exception as lack:
            let_pass(lack)
            self._give_up(lack)
            return
        self.seen += 1

    def _give_up(self, lack: Exception) -> None:
        """Look at no more batches; what was counted so far is kept."""
        reason = f"The ids of a batch could not be computed: {type(lack).__name__}."
        if isinstance(lack, UnreadableStepError):
            reason = str(lack)
        for one, tally in self._tallies:
            if not tally.lookups:
                one.record.ids_missing = reason
        self.end()

    def _lack(self, consumer: Consumer) -> str | None:
        """Return why no batch can be looked at, if so."""
        if consumer.distributed:
            return _SPREAD
        if consumer.hand_over != "call":
            return None
        batches = self._loop.record.batches_per_call
        if self._step is None or not self._step.draws_as_counted(batches):
            return _SEVERAL_DRAWS
        return self._loop.runtime.not_handed_once(
            consumer.iterator(), consumer.element_spec, batches
        )

    def _expect_ids(self, lack: str | None) -> None:
        """Count ids from now on, unless there is a `lack`."""
        vocabularies = self._vocabularies()
        for counted in self._tables:
            passage = counted.table.passage
            if passage is None or lack is not None:
                counted.record.ids_missing = counted.table.ids_missing or lack
                continue
            tokens = [
                one
                for one in vocabularies
                if any(one.handle is handle for handle in passage.vocabularies)
            ]
            if tokens:
                counted.zero_is_a_token = any(one.zero_is_a_token for one in tokens)
            unknown = {id for one in tokens for id in one.out_of_vocabulary}
            counted.tally = IdTally(
                counted.record.rows, passage, tuple(unknown) if tokens else None
            )

    def _known(self) -> list[KnownTable]:
        return self._told_by_trainer(lambda trainer, model: trainer.known_tables(model))

    def _vocabularies(self) -> list[Vocabulary]:
        return self._told_by_trainer(lambda trainer, model: trainer.vocabularies(model))

    def _told_by_trainer(self, ask: Callable[[Trainer, Any], list[_Told]]) -> list[_Told]:
        """Ask the trainer of the model; return nothing where the script's own layers fail."""
        model = self._loop.model() if self._loop.model is not None else None
        if self._loop.trainer is None or model is None:
            return []
        try:
            return ask(self._loop.trainer, model)
        except Exception as error:
            let_pass(error)
            self._recorder.note(
                f"The layers of a model could not be asked for their tables: "
                f"{type(error).__name__}: {error}"
            )
            return []

    def _record_of(self, table: StepTable, known: list[KnownTable]) -> RecordedVariable:
        """Return the trainer's record of the same variable, or else one of the step's own."""
        like = next((one.record for one in known if one.variable is table.variable), table.record)
        record = self._recorder.recording.table(like)
        number = 1
        # Variables without a name of their own, as in a list, are told apart by their order.
        while any(record is other.record for other in self._tables):
            number += 1
            record = self._recorder.recording.table(replace(like, layer=f"{like.layer} #{number}"))
        record.tell_anew(like)
        record.use = table.use
        if table.softmax is not None and record.path is not None:
            table.softmax.weights = record.path
        record.loop_id = self._loop.record.id
        return record

    def _nothing_read(self, known: list[KnownTable], reason: str) -> None:
        self._loop.record.tables_missing = reason
        for one in known:
            record = self._recorder.recording.table(one.record)
            record.use_missing = record.ids_missing = reason


class Looking:
    """Shows a few batches of one loop to its `TableWatch`; no step is timed meanwhile."""

    def __init__(self, loop: Loop, instruments: Instruments) -> None:
        self._loop = loop
        self._with = instruments
        self._tables = TableWatch(loop, instruments.recorder)
        self._began_ns = 0
        self._read = False
        self._taken: StandIn | None = None
        """Where the next batch is the one to be looked at."""

    def begin(self, consumer: Consumer) -> bool:
        """Begin to look at batches; return False where there is nothing to look for."""
        self._read = True
        self._tables.begin(consumer)
        if not self._tables.wants_batches:
            self.end()
            return False
        self._began_ns = time.monotonic_ns()
        self.at_next(consumer)
        return True

    def at_next(self, consumer: Consumer) -> None:
        """Have the next batch looked at."""
        self._give_back()
        self._taken = consumer.stand_in
        self._taken.look()

    def goes_on(self, consumer: Consumer, now_ns: int, remaining: int | None) -> bool:
        """Note the end of a step; return True if another batch is to be looked at."""
        self._tables.step_ended()
        elapsed = now_ns - self._began_ns
        enough = self._with.pace.looked_enough(self._tables.seen, elapsed, remaining)
        if enough or not self._tables.wants_batches:
            self.end()
            return False
        self.at_next(consumer)
        return True

    def batches_drawn(self, batches: Sequence[Any]) -> None:
        """Look at batches that the step, or the steps of one call, are about to draw."""
        self._aside(lambda: self._tables.handed_over(batches))

    def function_called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look at a call of a function in a step, maybe with its batch."""
        self._aside(lambda: self._tables.called(function, args, kwargs))

    def end(self) -> None:
        """Record what was seen; of a loop that ended before, what its step tells by itself."""
        self._give_back()
        if not self._read:
            self._read = True
            self._tables.begin(None)
        self._tables.end()

    def _give_back(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.give_back()

    def _aside(self, work: Callable[[], None]) -> None:
        """Do work of ours in the middle of a step, and take its time out of the script's."""
        began_ns = time.monotonic_ns()
        work()
        ended_ns = time.monotonic_ns()
        self._loop.clock.set_aside(ended_ns - began_ns)
        self._with.timeline.passed("aside", began_ns, ended_ns)
