from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.reporters.perfetto.own_tracks import BUSY_INTERVALS
from tests import factories
from tests.reporters.profiles import export, gpu_profile
from tests.trace.builder import TraceBuilder


def test_steps_carry_their_classes(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    first, second = written.slices("Steps")
    assert (first["name"], first["ts"], first["dur"]) == ("step 0", 0.0, 100.0)
    assert (second["name"], second["ts"], second["dur"]) == ("step 1", 100.0, 100.0)
    assert first["args"]["device_compute_us"] == 39.999
    assert first["args"]["input_wait_us"] == 38.0
    assert sum(first["args"].values()) == pytest.approx(100.0)


def test_every_gap_is_named_by_its_cause_and_says_more(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    gaps = written.slices("GPU:0 idle")
    assert [(gap["ts"], gap["dur"]) for gap in gaps] == [(0.0, 20.001), (60.0, 60.0), (160.0, 40.0)]
    assert gaps[1]["name"] == "Waiting for input"
    assert gaps[1]["args"]["cause"] == "input"
    assert gaps[1]["args"]["duration_us"] == 60.0
    for gap in gaps:
        causes = {
            key: value
            for key, value in gap["args"].items()
            if key.endswith("_us") and key != "duration_us"
        }
        assert sum(causes.values()) == pytest.approx(gap["dur"])


def test_a_gap_tells_its_start_its_step_and_the_launch_that_ended_it(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    first, second, third = (gap["args"] for gap in written.slices("GPU:0 idle"))
    assert [gap["start_ms"] for gap in (first, second, third)] == [0.0, 0.06, 0.16]
    assert [gap["step"] for gap in (first, second, third)] == [0, 0, 1]
    assert first["correlation_id"] == 41
    assert "correlation_id" not in second
    joined = [e["name"] for e in written.events if e.get("args", {}).get("correlation_id") == 41]
    assert joined == ["Launching operations", "gemm", "cuLaunchKernel"]


def test_a_gap_names_the_operation_that_held_the_input_up(tmp_path: Path) -> None:
    first, second, _ = export(gpu_profile(), tmp_path).slices("GPU:0 idle")

    assert second["args"]["operation"] == "Root::Map"
    assert second["args"]["operation_names"] == "parse"
    assert "operation" not in first["args"]


def test_the_counter_is_0_in_a_gap_and_100_outside(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    values = {
        event["ts"]: event["args"]["percent"] for event in written.events if event["ph"] == "C"
    }
    assert values[0.0] == 0.0
    assert values[30.0] == 100.0
    assert values[60.0] == 0.0
    assert values[200.0] == 0.0
    assert len(values) == min(BUSY_INTERVALS, 200) + 1


def test_findings_stand_at_the_first_step(tmp_path: Path) -> None:
    finding = factories.make_finding(title="Input gaps", evidence={"idle_percent": 60.0})

    fine = factories.make_finding(status="pass")

    written = export(gpu_profile(), tmp_path, findings=[finding, fine])

    [event] = [event for event in written.events if event["ph"] == "i"]
    assert (event["name"], event["ts"]) == ("Input gaps", 0.0)
    assert written.tracks[event["tid"]] == "Findings"
    assert event["args"]["idle_percent"] == 60.0
    assert event["args"]["advice"] == finding.advice


def test_what_is_not_known_has_no_track(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("TFE_Py_Execute", 0, 10)

    written = export(builder, tmp_path)

    assert list(written.tracks.values()) == ["python"]
    assert list(written.processes.values()) == ["pipediag"]
