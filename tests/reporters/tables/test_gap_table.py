from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.measures import profile as measured
from pipediag.measures.profile import describe_devices
from pipediag.reporters.tables.device_rows import GAP_COLUMNS, gap_rows
from pipediag.reporters.tables.gap_table import write_gap_table
from pipediag.trace.summary import TraceSummary, summarise
from tests.reporters.perfetto.profiles import gpu_profile
from tests.trace.cuda import CudaProfile


def written(directory: Path, *summaries: tuple[str, TraceSummary]) -> str:
    path = directory / "gaps.csv"
    write_gap_table(path, summaries)
    return path.read_bytes().decode("utf-8")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_is_what_the_report_says_of_the_gap(tmp_path: Path) -> None:
    summary = summarise(gpu_profile().save(tmp_path))
    text = io.StringIO()
    table = csv.DictWriter(text, GAP_COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(gap_rows(describe_devices(summary, None, {})))

    assert written(tmp_path, ("vm", summary)) == text.getvalue()
    assert len(rows(text.getvalue())) == 3


def test_a_gap_tells_when_why_and_what(tmp_path: Path) -> None:
    summary = summarise(gpu_profile().save(tmp_path))

    first, second, third = rows(written(tmp_path, ("vm", summary)))

    assert (first["start_ms"], first["duration_ms"]) == ("0.0", "0.020001")
    assert (first["step"], second["step"], third["step"]) == ("0", "0", "1")
    assert (second["cause"], second["iterator"]) == ("input", "Root::Map")
    assert (second["input_ms"], second["sync_ms"], second["host"]) == ("0.056", "0.0", "")


def test_no_gap_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "MOST_GAPS", 10)
    monkeypatch.setattr("pipediag.measures.profile._AT_ONCE", 7)
    profile = CudaProfile()
    profile.steps(0, 5_000)
    for start in range(0, 5_000, 100):
        profile.kernel((start, start + 20), device=0)
        profile.kernel((start, start + 50), device=1)
    summary = summarise(profile.save(tmp_path))

    found = rows(written(tmp_path, ("vm", summary)))

    report = describe_devices(summary, None, {})
    assert [(device.gap_count, len(device.gaps)) for device in report] == [(50, 10)] * 2
    assert [row["device"] for row in found] == ["GPU:0"] * 50 + ["GPU:1"] * 50
    assert [float(row["start_ms"]) for row in found] == [
        *(start / 1e3 for start in range(20, 5_000, 100)),
        *(start / 1e3 for start in range(50, 5_000, 100)),
    ]
    idle_ms = sum(float(row["duration_ms"]) for row in found[:50])
    assert idle_ms == pytest.approx(report[0].idle_ms - report[0].noise_ms)


def test_hosts_are_named_where_there_are_several(tmp_path: Path) -> None:
    summary = summarise(gpu_profile().save(tmp_path))

    found = rows(written(tmp_path, ("a", summary), ("b", summary)))

    assert [row["host"] for row in found] == ["a"] * 3 + ["b"] * 3


def test_a_profile_without_devices_has_a_header(tmp_path: Path) -> None:
    assert written(tmp_path) == ",".join(GAP_COLUMNS) + "\n"


def test_where_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PipediagError, match="Could not write"):
        write_gap_table(tmp_path / "file" / "gaps.csv", [])
