"""The memory that training takes, table by table, and what changes of a table would save.

All is computed from shapes, optimizer slots and what the step's graph shows of updates.
Activations, the data and what TensorFlow itself takes come on top.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.facts.machine import gpu_memory_bytes
from pipediag.session.embeddings import Embedding
from pipediag.session.loops import KerasUse, Loop
from pipediag.session.model import Session


def trained_loop(session: Session) -> Loop | None:
    """The one that the session diagnoses, or the first that trains: few steps diagnose none."""
    loop = session.diagnosed_loop()
    if loop is None:
        loop = next((one for one in session.loops if one.role == "training"), None)
    return loop


WORTH_A_PLAN = 10_000_000
"""Bytes of a table. Own choice: smaller ones are in no memory's way."""
BUCKETS = 10
"""Own choice: ids that share a row in hashing."""


@dataclass(frozen=True)
class TableMemory:
    """Bytes of one embedding table while it is trained."""

    layer: str
    rows: int
    dim: int
    dtype: str
    table_bytes: int
    slot_bytes: int
    temporary_bytes: int
    """What the update makes of the table's size and holds at one time."""
    copy_bytes: int
    """A copy of the table that its lookup makes; it is gone when the update begins."""

    @property
    def peak_bytes(self) -> int:
        """Table, slots, and the larger of temporaries and copy."""
        return self.table_bytes + self.slot_bytes + max(self.temporary_bytes, self.copy_bytes)


@dataclass(frozen=True)
class Alternative:
    """One change of a table, with all else as it is."""

    what: str
    device_bytes: int
    """What is left on the device at the peak."""
    saved_bytes: int
    note: str


@dataclass(frozen=True)
class MemoryPlan:
    """What training needs, held against the memory of the device."""

    tables: list[TableMemory]
    """The largest first."""
    other_bytes: int | None
    """Variables, slots and dense gradients beside the tables; None where not known."""
    needed_bytes: int
    """At the peak of a step."""
    device_bytes: int | None
    """As given by `--device-memory`, or as measured of the GPU; None without either."""
    given: bool
    alternatives: list[Alternative]
    """Of the largest table."""

    @property
    def lacking_bytes(self) -> int:
        """What the device has too little; 0 where it fits or the device is not known."""
        return 0 if self.device_bytes is None else max(0, self.needed_bytes - self.device_bytes)


def plan_memory(session: Session) -> MemoryPlan | None:
    """Return the plan of the loop that the session diagnoses; None where no table is worth one."""
    largest = max((table.table_bytes for table in session.embeddings), default=0)
    if largest < WORTH_A_PLAN and session.device_memory_bytes is None:
        return None
    loop = trained_loop(session)
    keras = loop.keras if loop else None
    compiled = keras is not None and bool(keras.jit_compile)
    sizes = [(table, _memory_of(table, compiled=compiled)) for table in session.embeddings]
    sizes.sort(key=lambda pair: -pair[1].peak_bytes)
    tables = [one for _, one in sizes]
    other = _other_bytes(keras, session.embeddings)
    held = sum(one.table_bytes + one.slot_bytes for one in tables)
    # Copies of lookups are gone when the updates make their temporaries.
    beside = max(sum(one.temporary_bytes for one in tables), sum(one.copy_bytes for one in tables))
    given = session.device_memory_bytes
    return MemoryPlan(
        tables=tables,
        other_bytes=other,
        needed_bytes=held + beside + (other or 0),
        device_bytes=given or gpu_memory_bytes(session),
        given=given is not None,
        alternatives=list(_alternatives(*sizes[0])) if sizes else [],
    )


def _memory_of(table: Embedding, *, compiled: bool) -> TableMemory:
    temporaries = table.temporary_peak_bytes
    if temporaries is None:
        temporaries = table.temporary_bytes or 0
    scattered = table.gradient == "sparse" and not table.gradient_spread
    copied = scattered and table.copied_on_lookup and not compiled
    return TableMemory(
        layer=table.layer,
        rows=table.rows,
        dim=table.dim,
        dtype=table.dtype,
        table_bytes=table.table_bytes,
        slot_bytes=table.slot_bytes or 0,
        temporary_bytes=temporaries,
        copy_bytes=table.table_bytes if copied else 0,
    )


def _other_bytes(keras: KerasUse | None, tables: list[Embedding]) -> int | None:
    """Return what the model and its optimizer have beside the tables, with dense gradients."""
    if keras is None or keras.variable_bytes is None or keras.trainable_bytes is None:
        return None
    trained = sum(one.table_bytes for one in tables if one.trainable)
    variables = keras.variable_bytes - sum(one.table_bytes for one in tables)
    slots = (keras.optimizer_bytes or 0) - sum(one.slot_bytes or 0 for one in tables)
    return max(0, variables) + max(0, slots) + max(0, keras.trainable_bytes - trained)


def _alternatives(table: Embedding, now: TableMemory) -> Iterator[Alternative]:
    def left(device_bytes: int, what: str, note: str) -> Alternative:
        return Alternative(what, device_bytes, now.peak_bytes - device_bytes, note)

    if table.table_bytes >= 4 * table.rows * table.dim:
        half = math.ceil(now.peak_bytes / 2)
        yield left(half, "16-bit table", "Table and slots as bfloat16 keep 8 bits of precision.")
    if table.trainable and table.gradient != "dense" and now.slot_bytes:
        if now.temporary_bytes:
            rows = now.table_bytes + now.slot_bytes + now.copy_bytes
            yield left(
                rows,
                "row-wise update",
                "An optimizer of pipediag.optimizers: the update makes nothing of the table's "
                "size. Rows that a batch lacks keep their moments.",
            )
        bare = now.table_bytes + now.copy_bytes
        yield left(bare, "SGD", "No slots. It learns otherwise.")
    buckets = math.ceil(table.rows / BUCKETS)
    if buckets < table.rows:
        hashed = math.ceil(now.peak_bytes * buckets / table.rows)
        yield left(hashed, "hashing", f"{BUCKETS} ids share a row, by a hash.")
    yield left(
        0,
        "host memory",
        'Under `tf.device("CPU:0")`: the rows of a batch cross to the device in each step.',
    )
