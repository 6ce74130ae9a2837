"""`pipediag trace`: the report about profiles, and the files that it reads and writes."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipediag.cli.trace import command
from pipediag.errors import PipediagError
from tests.reporters.devices import gpu_profile


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return gpu_profile().save(tmp_path)


def trace(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        command, [str(argument) for argument in arguments], catch_exceptions=False
    )


def test_the_summary_is_on_standard_output(profile: Path) -> None:
    result = trace(profile)

    assert result.exit_code == 0
    assert result.stderr == ""
    assert "GPU:0 computes 40" in result.stdout
    assert "With -o DIR" in result.stdout


def test_writes_report_tables_and_a_trace_for_perfetto(profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    result = trace(profile, "-o", out, "--json")

    assert {path.name for path in out.iterdir()} == {
        "trace.json",
        "gaps.csv",
        "devices.csv",
        "trace.perfetto.json.gz",
    }
    assert (out / "trace.json").read_text() == result.stdout
    with (out / "gaps.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["duration_ms"]) for row in rows] == pytest.approx([0.020001, 0.06, 0.04])
    assert rows[1]["cause"] == "input"
    with gzip.open(out / "trace.perfetto.json.gz") as stream:
        assert json.load(stream)["traceEvents"]
    assert "trace.perfetto.json.gz for ui.perfetto.dev" in result.stderr


def test_a_damaged_file_among_others_is_reported(profile: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.xplane.pb"
    damaged.write_bytes(profile.read_bytes()[:-20])

    result = trace(damaged, profile)

    assert result.exit_code == 0
    assert "Not read" in result.stdout
    assert "GPU:0 computes" in result.stdout
    assert "damaged.xplane.pb" in trace(damaged, profile, "--json").stderr


def test_the_workers_of_an_older_run_are_left_out_and_named(profile: Path, tmp_path: Path) -> None:
    for name in ("host_17.1700000000000", "host_9.1700000600000"):
        (tmp_path / "log").mkdir(exist_ok=True)
        (tmp_path / "log" / f"{name}.pt.trace.json").write_bytes(profile.read_bytes())

    result = trace(tmp_path / "log", "--json")

    report = json.loads(result.stdout)
    assert [host["host"] for host in report["hosts"]] == ["host_9"]
    assert "host_17.1700000000000.pt.trace.json wrote 600 s" in report["unread"][0]["reason"]


def test_nothing_readable_is_an_error_with_a_line_for_each_file(tmp_path: Path) -> None:
    for name in ("a.xplane.pb", "b.xplane.pb"):
        (tmp_path / name).write_bytes(b"\xff" * 50)

    with pytest.raises(PipediagError) as raised:
        trace(tmp_path)

    first, second = str(raised.value).splitlines()
    assert "a.xplane.pb" in first
    assert "b.xplane.pb" in second
