"""Embedding tables: their size, their padding, and the memory that training takes.

The memory plan is computed from shapes, optimizer slots and what the step's graph shows of updates.
Activations, the data and what TensorFlow itself takes come on top.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipediag.facts.limits import Threshold
from pipediag.session.loops import Embedding
from pipediag.session.model import Session
from pipediag.session.recorded_loops import EmbeddingIds

LARGE = Threshold(
    "size of the table", 10.0, "MB", "measured: at 26 MB Adam took 31 ms a step and SGD 7 ms"
)


def large(tables: Iterable[Embedding]) -> list[Embedding]:
    """Return the tables of at least that size."""
    return [table for table in tables if table.table_bytes >= LARGE.value * 1e6]


WITHIN = Threshold(
    "zeros between other ids",
    0.1,
    "% of the lookups",
    "own choice: one in a thousand may be intended",
)
AT_ENDS = Threshold(
    "zeros at the ends of rows of ids", 20.0, "% of the lookups", "own choice, on sixteen a row"
)
_LONG_ROW = 16
"""Ids in a row. Own choice: in shorter ones a zero has few others around it."""


def padding_percent(table: Embedding) -> float | None:
    """Return the share of the table's lookups that is padding, in percent.

    None where nothing says which id is padding, as the model does by `mask_zero`.
    """
    return table.ids.zero_percent if table.ids is not None and _zero_pads(table) else None


def padded_percent(session: Session) -> float | None:
    """Return the share of padding in the lookups of all tables that have some, in percent.

    Zeros that stand at the ends of rows alone, in all batches that were seen, are padding, too.
    """
    loop = session.diagnosed_loop()
    batch = loop.batch_size if loop is not None else None
    known = [
        table.ids
        for table in session.embeddings
        if table.ids and (_zero_pads(table) or _zeros_end_rows(table, table.ids, batch))
    ]
    lookups = sum(ids.lookups for ids in known)
    if not lookups:
        return None
    return sum((ids.zero_percent or 0.0) * ids.lookups for ids in known) / lookups


def _zero_pads(table: Embedding) -> bool:
    return table.mask_zero and not masks_a_token(table)


def _zeros_end_rows(table: Embedding, ids: EmbeddingIds, batch: int | None) -> bool:
    many = (ids.zero_percent or 0.0) >= AT_ENDS.value
    rows = ids.batches * (batch or 0) * (table.lookups or 1)
    in_a_row = ids.lookups / rows if rows else 0.0
    return many and in_a_row >= _LONG_ROW and within_percent(ids) < WITHIN.value


def masks_a_token(table: Embedding) -> bool:
    """Return True if the table masks id 0 although that stands for a token."""
    ids = table.ids
    return ids is not None and table.mask_zero and within_percent(ids) >= WITHIN.value


def within_percent(ids: EmbeddingIds) -> float:
    """Return the percent of the lookups by zeros between other ids, where no padding stands."""
    return 100.0 * ids.zeros_within / ids.lookups if ids.lookups else 0.0


WORTH_A_PLAN = 10_000_000
"""Bytes of a table. Own choice: smaller ones fit into any memory."""


@dataclass(frozen=True)
class MemoryPlan:
    """The memory that training needs, compared with that of the device."""

    other_bytes: int | None
    """Variables, slots and dense gradients apart from the tables; None where not known."""
    needed_bytes: int
    """Memory at the peak of a step."""
    device_bytes: int | None
    """Given by `--device-memory`, or measured of the GPU; None without either."""
    given: bool

    @property
    def lacking_bytes(self) -> int:
        """The bytes that the device has too little; 0 where it fits or the device is not known."""
        return 0 if self.device_bytes is None else max(0, self.needed_bytes - self.device_bytes)


def plan_memory(session: Session) -> MemoryPlan | None:
    """Return the plan of the loop that the session diagnoses; None where no table is worth one."""
    largest = max((table.table_bytes for table in session.embeddings), default=0)
    if largest < WORTH_A_PLAN and session.device_memory_bytes is None:
        return None
    # Too few steps diagnose no loop.
    trains = next((one for one in session.loops if one.role == "training"), None)
    loop = session.diagnosed_loop() or trains
    keras = loop.keras if loop else None
    tables = session.embeddings
    kept = sum(one.table_bytes + (one.slot_bytes or 0) for one in tables)
    # Copies of lookups are gone when the updates make their temporaries.
    temporaries = sum(one.temporary_bytes or 0 for one in tables)
    copies = sum(one.table_bytes for one in tables if one.copied_bytes_per_step)
    other, given = None, session.device_memory_bytes
    if keras and keras.variable_bytes is not None and keras.trainable_bytes is not None:
        # What the model and its optimizer have apart from the tables, with dense gradients.
        trained = sum(one.table_bytes for one in tables if one.trainable)
        variables = keras.variable_bytes - sum(one.table_bytes for one in tables)
        slots = (keras.optimizer_bytes or 0) - sum(one.slot_bytes or 0 for one in tables)
        other = max(0, variables) + max(0, slots) + max(0, keras.trainable_bytes - trained)
    return MemoryPlan(
        other_bytes=other,
        needed_bytes=kept + max(temporaries, copies) + (other or 0),
        device_bytes=given or _gpu_bytes(session),
        given=given is not None,
    )


def _gpu_bytes(session: Session) -> int | None:
    """Return the memory of each GPU; None without one, and where they differ."""
    used = any(device.kind.upper() == "GPU" for device in session.environment.devices)
    seen = session.host.gpus if session.host else []
    sizes = {one.memory_total_bytes for one in seen if one.memory_total_bytes}
    return sizes.pop() if used and len(sizes) == 1 else None
