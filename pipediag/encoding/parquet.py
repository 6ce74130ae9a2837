"""Tables for programs, with a type for each column.

Nothing computes a cell of these, so text needs no apostrophe as it does in a spreadsheet. It may
still be printed, and so is spelled out, as in a DataFrame of `pipediag.load`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from pipediag.encoding.visible import visible

Value = int | float | str | bool | None
Kind = Literal["whole", "number", "text"]
"""What a column holds beside what is missing: integers of 64 bits, floats, text."""

_MARK = b"written by pipediag"
_FOOTER_BYTES = 2**16
"""The names of some dozen columns and the mark are among the last."""
_AT_ONCE = 10_000
"""Rows of a row group: what is held as Python's objects."""


def can_write() -> bool:
    """Whether a writer is installed. It is imported for that, so ask where there is something."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return False
    return True


def write_parquet(
    file: BinaryIO, kinds: Mapping[str, Kind], rows: Iterable[Sequence[Value]]
) -> None:
    """Writes a table without an index, some thousand rows at once.

    Args:
        file: stays open.
        kinds: the columns in order, with what each holds.
        rows: cells in the order of the columns.

    Raises:
        ImportError: no writer is installed.
        OSError: the file can't be written.
        OverflowError: a whole number has more than 64 bits, which no measurement gives.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"whole": pa.int64(), "number": pa.float64(), "text": pa.string()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()])
    schema = schema.with_metadata({b"comment": _MARK})
    with pq.ParquetWriter(file, schema) as writer:
        remaining = iter(rows)
        while some := list(islice(remaining, _AT_ONCE)):
            columns = [
                pa.array([_shown(value) for value in values], field.type)
                for values, field in zip(zip(*some, strict=True), schema, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=schema))


def is_ours(path: Path) -> bool:
    """Whether `write_parquet` wrote that file; it needs no library to tell. False where none is."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _FOOTER_BYTES))
            return _MARK in file.read(_FOOTER_BYTES)
    except OSError:
        return False


def _shown(value: Value) -> Value:
    return visible(value) if isinstance(value, str) else value
