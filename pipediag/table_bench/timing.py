"""Times all tables of a plan, way after way, and writes down each round at once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import cycle, islice
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, TextIO

import numpy as np
import tensorflow as tf

from pipediag.session.table_bench import (
    BenchPlan,
    BenchTable,
    NotTimed,
    Placed,
    Result,
    Round,
    result_line,
)
from pipediag.table_bench.lookups import Lookup, as_it_is, way_out
from pipediag.table_bench.turns import Arm, rounds_of
from pipediag.table_bench.updates import NotMadeError, optimizer_of, own_optimizer
from pipediag.vocabulary import TimedPart, WayName

_LONGEST_REASON = 300
"""Characters of what TensorFlow says of a failure."""


def time_tables(plan: BenchPlan) -> None:
    """Time each way for an equal part of what is left of the budget."""
    began = perf_counter()
    to_time = sum(map(_parts, plan.tables))
    with Path(plan.results).open("w", encoding="utf-8") as file:
        deadlines = _deadlines(began, _budget_s(plan), to_time)
        for number, table in enumerate(plan.tables):
            own = list(islice(deadlines, _parts(table)))
            _TimedTable(number, table, plan, file).time(own)
            # Its functions are in cycles with all that they use, which is as large as the table.
            gc.collect()


def _parts(table: BenchTable) -> int:
    return len(table.step_ways) + len(table.lookup_ways)


def _budget_s(plan: BenchPlan) -> float:
    if plan.ends_at is None:
        return plan.budget_s
    return min(plan.budget_s, plan.ends_at - monotonic())


def _deadlines(began: float, budget_s: float, parts: int) -> Iterator[float]:
    """Until when each part may last; what one leaves over is the next one's."""
    return (began + budget_s * (part + 1) / parts for part in range(parts))


class _TimedTable:
    """One of the plan."""

    def __init__(self, number: int, table: BenchTable, plan: BenchPlan, file: TextIO) -> None:
        self._number = number
        self._table = table
        self._plan = plan
        self._file = file
        self._batches: list[Any] = []

    def time(self, deadlines: Sequence[float]) -> None:
        """All its ways, those of one part after the other, each until its own deadline."""
        try:
            self._batches = _batches_of(self._table)
            if not self._batches:
                self._tell(NotTimed(self._number, None, "No id of its batches is a row of it."))
                return
            with tf.device(self._table.device) if self._table.device else nullcontext():
                self._tell(Placed(self._number, tf.zeros(1).device, len(self._batches)))
                steps = len(self._table.step_ways)
                self._time_part("step", self._table.step_ways, deadlines[:steps])
                gc.collect()
                self._time_part("look-up", self._table.lookup_ways, deadlines[steps:])
        except Exception as error:  # noqa: BLE001 - the other tables can be timed all the same
            self._tell(NotTimed(self._number, None, _said(error)))

    def _time_part(
        self, timed: TimedPart, ways: Sequence[WayName], deadlines: Sequence[float]
    ) -> None:
        """Each against the same table as it is, which stays from one to the next."""
        if not ways:
            return
        try:
            base = self._base(timed)
        except Exception as error:  # noqa: BLE001 - TensorFlow may lack a kernel, or memory
            for way in ways:
                self._tell(NotTimed(self._number, way, _said(error)))
            return
        for way, until in zip(ways, deadlines, strict=True):
            try:
                self._time_way(way, timed, base, until)
            except Exception as error:  # noqa: BLE001 - as above
                self._tell(NotTimed(self._number, way, _said(error)))
            finally:
                # What a way has made is in cycles with its function, and as large as the table.
                gc.collect()

    def _base(self, timed: TimedPart) -> Arm:
        lookup = as_it_is(self._table)
        if timed == "look-up":
            return self._lookup_arm(lookup)
        return self._step_arm(lookup, own_optimizer(self._table, lookup.variables))

    def _time_way(self, way: WayName, timed: TimedPart, base: Arm, until: float) -> None:
        directory = Path(self._plan.directory)
        with way_out(way, self._table, self._plan.buckets, directory) as lookup:
            if timed == "look-up":
                arm = self._lookup_arm(lookup)
            else:
                optimizer = optimizer_of(way, self._table, lookup.variables)
                arm = self._step_arm(lookup, optimizer)
            for base_ms, ms in rounds_of(base, arm, until, _settle):
                self._tell(Round(self._number, way, timed, base_ms, ms))

    def _step_arm(self, lookup: Lookup, optimizer: Any) -> Arm:
        """Look-up, gradient and update, for a loss that asks for little: the mean of squares."""

        @tf.function(input_signature=self._signature(), jit_compile=self._table.jit)
        def step(ids: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(lookup.of(ids)))
            optimizer.apply(tape.gradient(loss, lookup.variables), lookup.variables)
            return loss

        return self._over_batches(step)

    def _lookup_arm(self, lookup: Lookup) -> Arm:
        """One after the other in one call: what a call takes is no part of a look-up in a step."""
        if not lookup.traced:
            return Arm(lambda: _last_of(lookup, self._batches), len(self._batches))
        batches = [tf.constant(ids) for ids in self._batches]

        @tf.function
        def look_up(batches: list[Any]) -> Any:
            last: list[Any] = []
            numbers = []
            for ids in batches:
                # Each waits for the last one, so that none runs beside it.
                with tf.control_dependencies(last):
                    last = [lookup.of(tf.identity(ids))]
                # What nothing reads a number of, TensorFlow leaves out.
                numbers.append(last[0][0, 0])
            return tf.stack(numbers)

        return Arm(lambda: look_up(batches), len(batches))

    def _over_batches(self, function: Callable[[Any], Any]) -> Arm:
        batches = [tf.constant(ids) for ids in self._batches]
        if self._table.jit:
            # XLA compiles for each length anew.
            for ids in {len(ids): ids for ids in batches}.values():
                function(ids)
        coming = cycle(batches)
        return Arm(lambda: function(next(coming)))

    def _signature(self) -> list[Any]:
        return [tf.TensorSpec([None], self._batches[0].dtype)]

    def _tell(self, result: Result) -> None:
        self._file.write(result_line(result))
        self._file.flush()


def _batches_of(table: BenchTable) -> list[Any]:
    """Ids of each batch, folded into the rows that are there."""
    # Of a file that is none of its kind, NumPy leaves open what it opened itself.
    with Path(table.ids_file).open("rb") as opened, np.load(opened) as file:
        batches = [file[name] for name in sorted(file.files, key=int)]
    dtype = np.int64 if any(ids.dtype == np.int64 for ids in batches) else np.int32
    return [(ids % table.rows).astype(dtype) for ids in batches if len(ids)]


def _last_of(lookup: Lookup, batches: Sequence[Any]) -> Any:
    """What the last one gave; no result is kept beyond the next one."""
    last = None
    for ids in batches:
        last = lookup.of(ids)
    return last


def _settle(result: Any) -> None:
    """Only when a number of it is here has a device that works ahead done it."""
    tf.reshape(result, [-1])[:1].numpy()


def _said(error: Exception) -> str:
    if isinstance(error, NotMadeError):
        return str(error)
    said = str(error).strip().partition("\n")[0][:_LONGEST_REASON]
    return f"{type(error).__name__}: {said}"
