from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.profiles.report import TraceResult, analyse_profiles, dump_trace_report, write_trace
from pipediag.session.trace_report import TraceReport
from pipediag.trace.hosts import reading_hosts
from tests.reporters.perfetto.profiles import gpu_profile


def analysed(*paths: Path) -> TraceResult:
    with reading_hosts(paths) as reading:
        return analyse_profiles(paths, reading)


def test_the_rules_of_devices_are_asked(tmp_path: Path) -> None:
    report = analysed(gpu_profile().save(tmp_path)).report

    assert "device-idle" in {finding.rule for finding in report.findings}


def test_the_report_says_what_was_named(tmp_path: Path) -> None:
    report = analysed(gpu_profile().save(tmp_path)).report

    assert report.path == str(tmp_path / "vm.xplane.pb")
    assert report.created_at.endswith("+00:00")


def test_the_json_is_the_report(tmp_path: Path) -> None:
    report = analysed(gpu_profile().save(tmp_path)).report
    text = dump_trace_report(report)

    assert TraceReport.model_validate_json(text) == report
    assert json.loads(text)["schema_version"] == "1"


def test_the_perfetto_trace_can_be_left_out(tmp_path: Path) -> None:
    result = analysed(gpu_profile().save(tmp_path))

    without = write_trace(result, tmp_path / "a", perfetto=False)
    with_it = write_trace(result, tmp_path / "b", perfetto=True)

    assert [path.name for path in without.files] == ["trace.json", "gaps.csv", "devices.csv"]
    assert without.exported is None
    assert with_it.exported is not None
    assert with_it.exported.path == tmp_path / "b" / "trace.perfetto.json.gz"
    assert with_it.exported.path.is_file()


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    result = analysed(gpu_profile().save(tmp_path))
    (tmp_path / "file").write_text("")

    with pytest.raises(PipediagError, match="Could not write"):
        write_trace(result, tmp_path / "file" / "out", perfetto=False)
