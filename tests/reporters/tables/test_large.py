from __future__ import annotations

import sys
from pathlib import Path

import pandas
import pyarrow.parquet as pq
import pytest

from pipediag.library.result import Result
from pipediag.reporters import write_formats
from pipediag.reporters.tables import large
from pipediag.reporters.tables.csv import tables
from pipediag.reporters.tables.gap_table import write_gap_table
from pipediag.reporters.tables.large import CAN_BE_LARGE, kinds_of
from pipediag.session.host import HostSample
from pipediag.session.model import Session
from pipediag.trace.summary import summarise
from pipediag.vocabulary import POOLS
from tests.reporters.perfetto.profiles import gpu_profile
from tests.reporters.tables.test_joined import profiled

OF_KIND = {"whole": int, "number": float, "text": str}
KINDS_IN_PANDAS = {"whole": "i", "number": "f", "text": "U"}


def full() -> Session:
    """Every one of the tables has rows."""
    samples = [
        HostSample(
            at_ms=250.0 * n,
            window="baseline",
            cpu_percent=50.0,
            rss_bytes=10**9,
            available_bytes=None if n else 2**33,
            io_wait_percent=None,
            read_bytes_per_s=1.5 * n,
            pools_percent={POOLS[0]: 12.5},
        )
        for n in range(3)
    ]
    return profiled(host_samples=samples)


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 1)


def test_each_column_holds_what_is_said_of_it() -> None:
    for table in tables(full()):
        if table.name not in CAN_BE_LARGE:
            continue
        kinds = kinds_of(table.columns)
        rows = list(table.rows)
        assert rows, table.name
        for row in rows:
            for column, value in row.items():
                assert value is None or type(value) is OF_KIND[kinds[column]], (column, value)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("name", CAN_BE_LARGE)
def test_it_is_the_table_that_load_gives(tmp_path: Path, name: str) -> None:
    session = full()
    written = write_formats(session, tmp_path, ["csv"])
    frame = Result(session, None).table(name)

    assert tmp_path / f"{name}.parquet" in written
    read = pq.read_table(tmp_path / f"{name}.parquet")
    assert read.column_names == list(frame.columns)
    for column in read.column_names:
        known = [None if pandas.isna(value) else value for value in frame[column].tolist()]
        assert read.column(column).to_pylist() == known
    kinds = kinds_of(read.column_names)
    read_by_pandas = pandas.read_parquet(tmp_path / f"{name}.parquet", dtype_backend="pyarrow")
    assert list(read_by_pandas.index) == list(range(len(frame)))
    for column, kind in kinds.items():
        assert read_by_pandas[column].dtype.kind == KINDS_IN_PANDAS[kind], column


def test_small_tables_are_written_once(tmp_path: Path) -> None:
    write_formats(full(), tmp_path, ["csv"])
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.usefixtures("all_are_large")
def test_without_a_writer_there_is_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    written = write_formats(full(), tmp_path, ["csv"])
    assert {path.suffix for path in written} == {".csv"}


def test_none_is_left_of_an_earlier_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "host.parquet").write_bytes(b"PAR1 somebody's own PAR1")
    with monkeypatch.context() as patched:
        patched.setattr(large, "LARGE", 10)
        write_formats(full(), tmp_path, ["csv"])
    assert (tmp_path / "steps.parquet").is_file()

    write_formats(full(), tmp_path, ["csv"])

    assert [path.name for path in tmp_path.glob("*.parquet")] == ["host.parquet"]


@pytest.mark.usefixtures("all_are_large")
def test_a_number_that_nobody_measured_is_left_to_csv(tmp_path: Path) -> None:
    session = full()
    session.host_samples[0] = session.host_samples[0].model_copy(update={"rss_bytes": 2**64})
    write_formats(session, tmp_path, ["csv"])
    assert not (tmp_path / "host.parquet").exists()
    assert str(2**64) in (tmp_path / "host.csv").read_text(encoding="utf-8")


@pytest.mark.usefixtures("all_are_large")
def test_all_gaps_of_a_profile_too(tmp_path: Path) -> None:
    summary = summarise(gpu_profile().save(tmp_path))

    paths = write_gap_table(tmp_path / "gaps.csv", [("vm", summary)])

    assert [path.name for path in paths] == ["gaps.csv", "gaps.parquet"]
    text, typed = (pandas.read_csv(paths[0]), pandas.read_parquet(paths[1]))
    assert len(typed) == len(text) == 3
    assert typed["duration_ms"].tolist() == text["duration_ms"].tolist()
    assert typed["cause"].tolist() == text["cause"].tolist()


def test_no_writer_is_looked_for_where_tables_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> bool:
        raise AssertionError("this imports a library")

    monkeypatch.setattr(large, "can_write", asked)
    assert write_formats(full(), tmp_path, ["csv"])
