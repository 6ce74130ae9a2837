from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipediag.encoding import parquet
from pipediag.encoding.parquet import Kind, can_write, is_ours, write_parquet

KINDS: dict[str, Kind] = {"n": "whole", "ms": "number", "text": "text"}


def written(rows: list[list[Any]]) -> Any:
    stream = io.BytesIO()
    write_parquet(stream, KINDS, rows)
    return pq.read_table(io.BytesIO(stream.getvalue()))


def test_columns_keep_their_types_beside_what_is_missing() -> None:
    table = written([[1, 0.5, "a"], [None, None, None], [2**53 + 1, 2.0, ""]])

    assert [str(field.type) for field in table.schema] == ["int64", "double", "string"]
    assert table.column("n").to_pylist() == [1, None, 2**53 + 1]
    assert table.column("ms").to_pylist() == [0.5, None, 2.0]
    assert table.column("text").to_pylist() == ["a", None, ""]


def test_columns_without_any_value_have_the_same_types() -> None:
    table = written([[None, None, None]])
    assert [str(field.type) for field in table.schema] == ["int64", "double", "string"]
    assert written([]).schema == table.schema


def test_rows_of_several_groups_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_AT_ONCE", 7)
    table = written([[n, float(n), str(n)] for n in range(20)])
    assert table.column("n").to_pylist() == list(range(20))


def test_what_a_terminal_would_obey_is_spelled_out() -> None:
    table = written([[1, 1.0, "\x1b[2J\u202e\udcff"], [2, 2.0, "=1+1"]])
    assert table.column("text").to_pylist() == ["\\x1b[2J\\u202e\\udcff", "=1+1"]


def test_a_number_that_nobody_measured_is_no_other_one() -> None:
    with pytest.raises(OverflowError):
        written([[2**64, 1.0, ""]])


def test_a_file_is_known_for_ours_by_what_is_in_it(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours.parquet", tmp_path / "other.parquet"
    with ours.open("wb") as file:
        write_parquet(file, KINDS, [[n, 0.1 * n, "x" * 50 + str(n)] for n in range(30_000)])
    pq.write_table(pq.read_table(ours).replace_schema_metadata(None), other)

    assert ours.stat().st_size > 2**17
    assert is_ours(ours)
    assert not is_ours(other)
    assert not is_ours(tmp_path / "none.parquet")


def test_without_a_library_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_write()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert not can_write()
