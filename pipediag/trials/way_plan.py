"""Which tables of a run are timed with which ways out, or why they are not."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pipediag.facts.keras_version import is_legacy
from pipediag.facts.table_ways import Shares, as_it_is, ways_out
from pipediag.facts.trained_loop import trained_loop
from pipediag.measures.missing import Missing
from pipediag.session.embeddings import Embedding
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.session.table_bench import BenchTable
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, TimedPart, WayName

MOST_TABLES = 3
"""The largest ones. Own choice: as many as `plan-memory` shows ways out of."""
_MEMORY_SHARE = 0.6
"""Of what is free, that timing may take. Own choice: the estimate leaves TensorFlow itself out."""
_FEWEST_PART = 0.1
"""Of a table's rows. Own choice: what a pass over fewer costs says little of all of them."""
_LOOKED_UP: frozenset[WayName] = frozenset({"8-bit rows", "memory-mapped and frozen"})
"""Of a trained table, these are not trained."""
_NOT_HERE: dict[WayName, str] = {
    "sharding": "Rows on other devices are not to be had on this machine.",
    "host with hot rows on the device": "It takes a device beside the host, and code of your own.",
}
_NO_OPTIMIZER = "Which optimizer updates it is known of Keras' `fit` alone."
_DENSE = (
    "Its gradient is dense in the run, for something that uses the whole table, which the table by "
    "itself has not."
)


@dataclass(frozen=True)
class Wanted:
    """A table and the ways of it that are to be timed."""

    bench: BenchTable
    not_timed: dict[WayName, str] = field(default_factory=dict)
    """Why the others are not."""
    notes: list[str] = field(default_factory=list)
    """In what the timed table is not that of the run."""


def wanted(
    session: Session,
    table: Embedding,
    ids_file: str | None,
    shares: Shares,
    free_bytes: int | None,
) -> Wanted | Missing:
    """What is timed of a table.

    Args:
        session: of the run.
        table: one of it.
        ids_file: with the ids of its batches; None where none were kept.
        shares: into how many parts tables are divided.
        free_bytes: memory that is free for the tables, on the host, or the device that holds them.
    """
    if (lack := _lack(session, table)) is not None:
        return Missing(lack)
    if ids_file is None:
        return Missing("The ids of its batches were not kept.")
    keras = _keras(session)
    compiled = keras is not None and bool(keras.jit_compile)
    rows = _rows_that_fit(table, free_bytes, compiled=compiled)
    if rows < _FEWEST_PART * table.rows:
        return Missing("There is no memory for a tenth of its rows, twice with all that it takes.")
    ways: dict[TimedPart, list[WayName]] = {"step": [], "look-up": []}
    not_timed: dict[WayName, str] = {}
    for way in (one.name for one in ways_out(table, shares, compiled=compiled)):
        timed: TimedPart = "look-up" if way in _LOOKED_UP or not table.trainable else "step"
        if (reason := _why_not(way, timed, table, keras)) is None:
            ways[timed].append(way)
        else:
            not_timed[way] = reason
    bench = BenchTable(
        ids_file=ids_file,
        rows=rows,
        dim=table.dim,
        dtype=table.dtype,
        reads_whole=bool(table.copied_on_lookup),
        step_ways=ways["step"],
        lookup_ways=ways["look-up"],
        optimizer=keras.optimizer if keras else None,
        arguments=dict(keras.optimizer_settings) if keras else {},
        slots=table.slots,
        jit=compiled,
        device=_device(table),
    )
    return Wanted(bench, not_timed, _notes(session, table, rows))


def _lack(session: Session, table: Embedding) -> str | None:
    """Why none of its ways can be timed."""
    return _lack_of_run(session) or _lack_of_ids(table)


def _lack_of_run(session: Session) -> str | None:
    environment, loop = session.environment, trained_loop(session)
    if environment.keras is None or is_legacy(session, loop) or _major(environment.keras) < 3:
        return "Tables are timed with Keras 3, which the run did not have."
    if environment.keras_backend not in (None, "tensorflow"):
        return (
            f"Tables are timed with Keras on TensorFlow, and it ran on {environment.keras_backend}."
        )
    if loop is not None and loop.replicas > 1:
        return "The step of several replicas is not made anew on one."
    return None


def _lack_of_ids(table: Embedding) -> str | None:
    if table.ids is None:
        return table.ids_missing or "Its ids were not seen."
    if table.ids.incomplete:
        return f"Some of its lookups are not known: {table.ids.incomplete}"
    return None


def _major(version: str) -> int:
    number = version.partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _keras(session: Session) -> KerasUse | None:
    loop = trained_loop(session)
    return loop.keras if loop else None


def _rows_that_fit(table: Embedding, free_bytes: int | None, *, compiled: bool) -> int:
    """The table as it is and one way out beside it, while the values of one more are drawn."""
    if free_bytes is None:
        return table.rows
    needed = 2 * as_it_is(table, compiled=compiled).peak + 3 * table.table_bytes
    return min(table.rows, math.floor(table.rows * _MEMORY_SHARE * free_bytes / needed))


def _why_not(
    way: WayName, timed: TimedPart, table: Embedding, keras: KerasUse | None
) -> str | None:
    if way in _NOT_HERE:
        return _NOT_HERE[way]
    if timed == "look-up":
        return None
    if keras is None or keras.optimizer is None:
        return _NO_OPTIMIZER
    if table.gradient != "sparse":
        return _DENSE if table.gradient == "dense" else table.missing or "Its step was not read."
    if way == "row-wise update" and keras.optimizer not in ROW_WISE_OPTIMIZERS:
        return f"There is no row-wise optimizer in place of {keras.optimizer}."
    return None


def _device(table: Embedding) -> str | None:
    """Its kind and number: a run of its own has no jobs and tasks."""
    kind, _, rest = (table.device or "").rpartition("device:")
    return f"/device:{rest}" if kind or rest else None


def _notes(session: Session, table: Embedding, rows: int) -> list[str]:
    notes = []
    if rows < table.rows:
        notes.append(
            f"{rows:,} of {table.rows:,} rows were timed: more do not fit into memory twice. Where "
            "a step passes over the whole table, it takes longer with all of them."
        )
    if (table.lookups or 1) > 1:
        notes.append(
            f"All ids of a batch are looked up in one place, where the step has {table.lookups}."
        )
    keras = _keras(session)
    if keras is not None and keras.jit_compile:
        notes.append("XLA compiles steps as in the run, and look-ups not.")
    if session.environment.mixed_precision:
        notes.append("The policy of mixed precision is left out.")
    if table.ids is not None and table.ids.outside:
        notes.append("Ids outside the table are left out.")
    if table.regularizer or table.constraint:
        notes.append("Regularizer and constraint of the table are left out.")
    return notes
