"""An embedding table in memory as it is trained, and what each way out leaves of that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.memory_plan import WayOut
from pipediag.vocabulary import WayName

_SCALE_BYTES = 4
"""A float32 for each row of 8-bit numbers."""
_ID_BYTES = 4
_NO_HITS = "One batch alone was seen, which tells nothing of the next one's hits."
_THERE_AND_BACK = 2
"""Vectors go to where they are used, and their gradients come back."""


@dataclass(frozen=True)
class Shares:
    """Into how many parts a table is divided."""

    devices: int = 4
    """Own choice: of sharding."""
    buckets: int = 10
    """Own choice: rows that share a bucket in hashing, and remainders."""


@dataclass(frozen=True)
class InMemory:
    """Bytes of one table."""

    table: int
    slots: int
    temporaries: int
    copy: int

    @property
    def peak(self) -> int:
        """The copy is gone when the update begins."""
        return self.table + self.slots + max(self.temporaries, self.copy)

    def scaled(self, ratio: float) -> InMemory:
        """Of a table of so many times the bytes."""
        parts = (self.table, self.slots, self.temporaries, self.copy)
        return InMemory(*(math.ceil(ratio * part) for part in parts))


def as_it_is(table: Embedding, *, compiled: bool) -> InMemory:
    """As the run has it; `compiled` says whether XLA compiles the step."""
    temporaries = table.temporary_peak_bytes
    if temporaries is None:
        temporaries = table.temporary_bytes or 0
    scattered = table.gradient == "sparse" and not table.gradient_spread
    return InMemory(
        table=table.table_bytes,
        slots=table.slot_bytes or 0,
        temporaries=temporaries,
        copy=_copy(table, compiled=compiled) if scattered else 0,
    )


def _copy(table: Embedding, *, compiled: bool) -> int:
    """What a lookup copies once rows are scattered into the table."""
    return table.table_bytes if table.copied_on_lookup and not compiled else 0


def ways_out(table: Embedding, shares: Shares, *, compiled: bool) -> list[WayOut]:
    """Those that apply to it, each alone."""
    now = as_it_is(table, compiled=compiled)
    return [
        *_narrower(table, now),
        *_other_updates(table, now, compiled=compiled),
        *_fewer_rows(table, now, shares),
        _sharded(table, now, shares),
        _on_host(table, now),
        _mapped(table, now),
    ]


def _narrower(table: Embedding, now: InMemory) -> Iterator[WayOut]:
    if _item_bytes(table) >= 4:
        half = now.scaled(2 / _item_bytes(table))
        yield _way("bfloat16", now, half.peak, "Table and slots keep 8 bits of precision.")
    if _item_bytes(table) > 1:
        quantised = table.rows * (table.dim + _SCALE_BYTES)
        yield _way(
            "8-bit rows",
            now,
            quantised,
            "An 8-bit number each and a scale a row; for a table that is not trained any more.",
        )


def _other_updates(table: Embedding, now: InMemory, *, compiled: bool) -> Iterator[WayOut]:
    """Of the optimizer; its results differ in rows that a batch does not have."""
    if not table.trainable or table.gradient == "dense":
        return
    rows_alone = replace(now, temporaries=0, copy=_copy(table, compiled=compiled))
    if now.slots and now.temporaries:
        yield _way(
            "row-wise update",
            now,
            rows_alone.peak,
            "An optimizer of pipediag.optimizers: slots stay, the update makes nothing of the "
            "table's size.",
        )
    if now.slots:
        yield _way("sgd", now, replace(rows_alone, slots=0).peak, "No slots; it learns otherwise.")


def _fewer_rows(table: Embedding, now: InMemory, shares: Shares) -> Iterator[WayOut]:
    buckets = math.ceil(table.rows / shares.buckets)
    if buckets >= table.rows:
        return
    yield _way(
        "hashing",
        now,
        now.scaled(buckets / table.rows).peak,
        f"{shares.buckets} ids share a row, by a hash.",
    )
    both = buckets + shares.buckets
    if both < table.rows:
        yield _way(
            "quotient-remainder",
            now,
            now.scaled(both / table.rows).peak,
            f"Two tables, by id // {shares.buckets} and id % {shares.buckets}: each id has a "
            "vector of its own, made of two.",
        )


def _sharded(table: Embedding, now: InMemory, shares: Shares) -> WayOut:
    """Each device asks the others for all rows but its own share."""
    part = now.scaled(math.ceil(table.rows / shares.devices) / max(1, table.rows))
    exchanged = None
    if (ids := _all_ids(table)) is not None:
        away = ids.unique_per_step * (1 - 1 / shares.devices)
        exchanged = round(away * (_vectors(table) + _ID_BYTES))
    return _way(
        "sharding",
        now,
        part.peak,
        f"Rows divided over {shares.devices} devices.",
        exchanged=exchanged,
        exchanged_missing=_why_no_ids(table),
    )


def _on_host(table: Embedding, now: InMemory) -> WayOut:
    """Of the most frequent ids one in a hundred rows; the rest is fetched, each row once."""
    hit = exchanged = None
    rows = math.ceil(table.rows / 100)
    if (ids := _all_ids(table)) is not None:
        rows = ids.hot_rows
        hit = ids.hot_percent_ahead
        if hit is not None:
            missed = ids.lookups_per_step * (1 - hit / 100)
            exchanged = round(min(missed, ids.unique_per_step) * _vectors(table))
    return _way(
        "host with hot rows on the device",
        now,
        rows * table.dim * _item_bytes(table),
        "One row in a hundred on the device, the most frequent ones, by code of your own.",
        host=now.peak,
        exchanged=exchanged,
        exchanged_missing=_why_no_ids(table) or (_NO_HITS if hit is None else None),
        hit=hit,
    )


def _mapped(table: Embedding, now: InMemory) -> WayOut:
    """The system keeps what was read of the file as long as it has room."""
    touched = exchanged = None
    if (ids := _all_ids(table)) is not None:
        touched = ids.unique * table.dim * _item_bytes(table)
        exchanged = round(ids.unique_per_step * table.dim * _item_bytes(table))
    return _way(
        "memory-mapped and frozen",
        now,
        0,
        "Vectors are read from a file in the pipeline and not trained; the host holds those that "
        "were read.",
        host=touched,
        exchanged=exchanged,
        exchanged_missing=_why_no_ids(table),
    )


def _all_ids(table: Embedding) -> EmbeddingIds | None:
    """None where some lookups are not among those that were told, so that a step needs more."""
    return None if table.ids is None or table.ids.incomplete else table.ids


def _why_no_ids(table: Embedding) -> str | None:
    """Why `_all_ids` has none."""
    if table.ids is None:
        return table.ids_missing or "Its ids were not seen."
    return table.ids.incomplete


def _vectors(table: Embedding) -> int:
    """Bytes of a row on its way, and of its gradient where it is trained."""
    ways = _THERE_AND_BACK if table.trainable else 1
    return ways * table.dim * _item_bytes(table)


def _item_bytes(table: Embedding) -> int:
    return max(1, table.table_bytes // max(1, table.rows * table.dim))


def _way(
    name: WayName,
    now: InMemory,
    device: int,
    note: str,
    host: int | None = 0,
    exchanged: int | None = None,
    exchanged_missing: str | None = None,
    hit: float | None = None,
) -> WayOut:
    return WayOut(
        name=name,
        device_bytes=device,
        host_bytes=host,
        saved_bytes=now.peak - device,
        exchanged_bytes_per_step=exchanged,
        exchanged_missing=exchanged_missing,
        hit_percent=hit,
        note=note,
    )
