from __future__ import annotations

import json
import struct
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import PipediagError
from pipediag.measures.loop.measures import LoopSections
from pipediag.runner import diagnosis
from pipediag.runner.diagnosis import NO_LOOP, NO_RECORDING, UNDECIDED, diagnose
from pipediag.runner.supervisor import ChildResult
from pipediag.session.host_track import HostTrack
from pipediag.session.model import Session
from pipediag.session.recording import RecordedOtherUse, Recording
from pipediag.session.settings import TIMELINE_FILE, RunSettings
from pipediag.session.timeline import Span, span_line
from tests.measures.tracks import make_track
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT, make_environment

UNSAMPLED = HostTrack(pid=100, missing="The host was not sampled.")


def diagnosed(
    folder: Path,
    recording: Recording | None,
    host: HostTrack = UNSAMPLED,
    *,
    epochs: int | None = None,
    **ending: Any,
) -> Session:
    values: dict[str, Any] = {
        "outcome": "stopped",
        "script_status": None,
        "detail": None,
        "started_ns": 1000 * MS,
        "ended_ns": 6000 * MS,
    }
    child = ChildResult(**{**values, **ending})
    settings = RunSettings("train.py", ("--fast",), False, str(folder), epochs=epochs)
    if recording is not None:
        (folder / "recording.json").write_text(json.dumps(asdict(recording)), encoding="utf-8")
    return diagnose(folder, child, host, settings)


def test_trials_that_a_script_did_not_outlive_are_no_part_of_its_run(
    tmp_path: Path,
) -> None:
    spans = [
        Span(1, "script", 1000 * MS, None),
        Span(2, "fit", 2000 * MS, None, "fit", SCRIPT, 20),
        Span(3, "steps", 2000 * MS, None, "loop1"),
    ]
    (tmp_path / TIMELINE_FILE).write_bytes(b"".join(map(span_line, spans)))
    session = diagnosed(tmp_path, make_recording(), outcome="timed-out", held_ns=4000 * MS)
    assert session.run is not None
    assert session.run.total_s == pytest.approx(3.0)
    assert session.run.pipediag_s == pytest.approx(2.0)
    assert session.run.projected_total_s is not None
    assert session.wall_s == 5.0


def test_a_whole_run_becomes_a_session(tmp_path: Path) -> None:
    session = diagnosed(tmp_path, make_recording())
    assert session.verdict.bottleneck == "input"
    assert (session.verdict.line, session.verdict.op_id) == (12, "op2")
    assert session.steps is not None
    assert session.steps.mean_ms == 10.0
    assert session.breakdown is not None
    assert sum(share.percent for share in session.breakdown.values()) == pytest.approx(100.0)
    assert session.script.args == ["--fast"]
    assert session.wall_s == 5.0
    assert session.host is None
    assert session.host_missing == "The host was not sampled."
    assert session.combined is None
    assert len(session.step_rows) == 70
    assert session.findings


def test_the_session_survives_its_json(tmp_path: Path) -> None:
    session = diagnosed(tmp_path, make_recording())
    assert Session.model_validate_json(session.model_dump_json()) == session


def test_advice_of_failed_findings_becomes_the_next_steps(tmp_path: Path) -> None:
    session = diagnosed(tmp_path, make_recording())
    advice = {finding.advice for finding in session.findings if finding.status == "fail"}
    assert advice
    assert set(session.verdict.next_steps) <= advice


def test_a_child_that_died_before_it_recorded_anything(tmp_path: Path) -> None:
    session = diagnosed(
        tmp_path, None, outcome="killed", script_status=-9, detail="It was killed by SIGKILL."
    )
    assert session.verdict.bottleneck == "inconclusive"
    assert "killed by SIGKILL" in session.verdict.summary
    assert (session.steps, session.steps_missing) == (None, NO_RECORDING)
    assert session.script.status == -9
    assert session.loops == []


def test_a_script_that_trains_nothing_gets_its_sentence(tmp_path: Path) -> None:
    recording = make_recording(
        loops=[make_recorded_loop(role="other", role_reason="no variable was written")],
        windows=[],
        other_uses=[RecordedOtherUse("`Session.run`", "tf1.py", 9, 1)],
    )
    session = diagnosed(tmp_path, recording, outcome="finished", script_status=0)
    assert session.verdict.bottleneck == "inconclusive"
    assert "`Session.run` at tf1.py:9 (once)" in session.verdict.summary
    assert session.breakdown_missing == NO_LOOP
    assert [loop.diagnosed for loop in session.loops] == [False]
    assert session.pipeline is None


NO_LOOP_AT_ALL = make_recording(loops=[], windows=[])


@pytest.mark.parametrize(
    "recording",
    [
        None,
        NO_LOOP_AT_ALL,
        make_recording(windows=[]),
        make_recording(windows=[make_window("baseline", make_block(4))]),
        make_recording(),
    ],
    ids=["no recording", "no loop", "no window", "four steps", "measured"],
)
def test_a_section_of_the_loop_is_there_or_says_why_it_is_not(
    tmp_path: Path, recording: Recording | None
) -> None:
    session = diagnosed(tmp_path, recording)
    names = {field.name for field in fields(LoopSections)}
    told = [name for name in names if f"{name}_missing" in Session.model_fields]
    assert {"steps", "breakdown", "host"} <= set(told)
    for name in told:
        missing = getattr(session, f"{name}_missing")
        assert (getattr(session, name) is None) is (missing is not None), name
        assert missing is None or missing.endswith("."), name


def test_the_verdict_of_a_draft_is_never_left(tmp_path: Path) -> None:
    for recording in (None, NO_LOOP_AT_ALL, make_recording()):
        assert diagnosed(tmp_path, recording).verdict.summary != UNDECIDED.summary


def test_a_killed_child_loses_no_step(tmp_path: Path) -> None:
    recording = make_recording(windows=[make_window("warmup")], snapshots=[], outcome="running")
    starts = [(4000 + 10 * index) * MS for index in range(30)]
    records = [struct.pack("<6q", 0, 1, start, 10 * MS, 6 * MS, 1) for start in starts]
    (tmp_path / "steps.journal").write_bytes(b"".join(records))
    session = diagnosed(tmp_path, recording, outcome="killed", script_status=-9)
    assert session.steps is not None
    assert session.steps.count == 30
    assert session.input_wait is not None
    assert session.input_wait.native_percent == pytest.approx(60.0)
    assert any("30 steps were recovered" in note for note in session.notes)


def test_one_step_training_is_inconclusive(tmp_path: Path) -> None:
    window = make_window("warmup", make_block(1), complete=False, reason="the script finished")
    session = diagnosed(tmp_path, make_recording(windows=[window], snapshots=[]))
    assert session.verdict.bottleneck == "inconclusive"
    assert "Only 1 steps were seen" in session.verdict.summary
    assert session.ceiling is None


def test_a_damaged_recording_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text("{", encoding="utf-8")
    with pytest.raises(PipediagError, match="not complete JSON"):
        diagnosed(tmp_path, None)


@pytest.mark.parametrize(("quota", "allowed"), [(None, 4.0), (1.5, 1.5), (8.0, 4.0)])
def test_the_host_is_held_to_the_cores_or_the_lower_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: float | None, allowed: float
) -> None:
    environment = make_environment(cores=4, cpu_quota=quota)
    monkeypatch.setattr(diagnosis, "describe_machine", lambda recorded: environment)
    host = diagnosed(tmp_path, make_recording(), make_track(60)).host
    assert host is not None
    assert host.cores_allowed == allowed
    # The process takes 1.2 cores.
    assert host.cpu_percent == pytest.approx(120 / allowed)


def test_epochs_that_the_user_gives_reach_the_loop(tmp_path: Path) -> None:
    loop = make_recorded_loop(kind="eager", keras=None, planned_steps=None)
    session = diagnosed(tmp_path, make_recording(loops=[loop]), epochs=12)
    assert [one.planned_rounds for one in session.loops] == [12]
