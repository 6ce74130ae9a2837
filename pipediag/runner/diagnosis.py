"""From what a run left behind to its session: recording, journal, profile and host samples."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipediag import __version__
from pipediag.facts.machine import cores_allowed
from pipediag.facts.order import concluded
from pipediag.measures.host.of_loop import host_of_loop
from pipediag.measures.host.samples import host_samples
from pipediag.measures.loop.embeddings import describe_embeddings
from pipediag.measures.loop.loops import diagnosed_loop, loop_rows
from pipediag.measures.loop.measures import LoopMeasures, measure_loop
from pipediag.measures.recorded_windows import step_rows, window_rows
from pipediag.measures.verdict.case import Case
from pipediag.measures.verdict.decision import decide
from pipediag.rules.registry import run_rules
from pipediag.runner.supervisor import ChildResult
from pipediag.sensors.machine import describe_machine
from pipediag.session.host_track import HostTrack
from pipediag.session.model import SCHEMA_VERSION, Session
from pipediag.session.reading import read_journal, read_recording, recover
from pipediag.session.recording import RecordedLoop, Recording
from pipediag.session.run import Environment, OtherProcesses, OtherUse, ProfilerConflict, Script
from pipediag.session.settings import JOURNAL_FILE, RECORDING_FILE, RunSettings

NO_RECORDING = "The script ended before TensorFlow was seen, so nothing was recorded."
NO_LOOP = "No training loop was seen."


def diagnose(
    capture_directory: Path, child: ChildResult, host: HostTrack, settings: RunSettings
) -> Session:
    """The session of a run, rules and verdict included.

    A child that died early gives a session in which everything that was not measured is None with
    a reason.

    Raises:
        PipediagError: the recording is there and can't be read.
    """
    recording = read_recording(capture_directory / RECORDING_FILE)
    session = {
        "schema_version": SCHEMA_VERSION,
        "pipediag_version": __version__,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "script": _script(child, settings),
        "wall_s": (child.ended_ns - child.started_ns) / 1e9,
    }
    if recording is None:
        unknown = {
            "environment": describe_machine(None),
            "loops": [],
            "other_processes": _other_processes(host),
        }
        return _conclude(_nothing(NO_RECORDING) | session | unknown)
    recovered = recover(recording, read_journal(capture_directory / JOURNAL_FILE))
    session |= _of_run(recording, host, recovered)
    loop = diagnosed_loop(recording)
    session["loops"] = loop_rows(recording, loop)
    if loop is None:
        return _conclude(_nothing(NO_LOOP) | session)
    return _conclude_loop(session, recording, loop, host)


def _conclude_loop(
    session: dict[str, Any], recording: Recording, loop: RecordedLoop, track: HostTrack
) -> Session:
    environment: Environment = session["environment"]
    host, host_missing = host_of_loop(track, recording, loop, cores_allowed(environment))
    measures = measure_loop(recording, loop, host)
    notes = [*session["notes"], *([measures.trace_missing] if measures.trace_missing else [])]
    session |= {
        "host": host,
        "host_missing": host_missing,
        "step_rows": step_rows(recording, loop),
        "notes": notes,
        **_sections(measures),
    }
    return _conclude(session)


def _conclude(session: dict[str, Any]) -> Session:
    """Verdict, then the rules, then what they advise."""
    sections = {
        name: session[name]
        for name in (
            "script",
            "loops",
            "steps",
            "steps_missing",
            "breakdown",
            "breakdown_missing",
            "input_wait",
            "perturbation",
            "ceiling",
            "pipeline",
            "host",
            "other_uses",
            "other_processes",
        )
        if name in session
    }
    case = Case(
        **sections,
        tensorflow=session["environment"].tensorflow,
        consumer_alone=session["differential"] is not None,
    )
    drafted = Session(**session, combined=None, verdict=decide(case))
    return concluded(drafted, run_rules(drafted))


def _script(child: ChildResult, settings: RunSettings) -> Script:
    return Script(
        path=settings.script,
        args=list(settings.args),
        module=settings.module,
        status=child.script_status,
        outcome=child.outcome,
        detail=child.detail,
    )


def _of_run(recording: Recording, host: HostTrack, recovered: int) -> dict[str, Any]:
    """What holds for the run whether or not there was a training loop."""
    environment = describe_machine(recording.environment)
    notes = list(recording.notes)
    if recovered:
        notes.append(
            f"{recovered} steps were recovered from the journal: the process ended before it could "
            "write them down."
        )
    return {
        "environment": environment,
        "embeddings": describe_embeddings(recording.variables),
        "windows": window_rows(recording),
        "host_samples": host_samples(
            host, recording.windows, recording.started_ns, cores_allowed(environment)
        ),
        "other_uses": [OtherUse(**asdict(use)) for use in recording.other_uses],
        "other_processes": _other_processes(host),
        "profiler_conflicts": [
            ProfilerConflict(**asdict(conflict)) for conflict in recording.profiler_conflicts
        ],
        "notes": notes,
    }


def _other_processes(host: HostTrack) -> OtherProcesses | None:
    last = host.readings[-1] if host.readings else None
    if last is None or not last.children:
        return None
    return OtherProcesses(count=last.children, cpu_s=last.children_cpu_ns / 1e9)


def _nothing(reason: str) -> dict[str, Any]:
    """The sections of a loop, all missing for one reason."""
    measured = ("steps", "breakdown", "perturbation", "differential", "ceiling", "pipeline", "host")
    missing: dict[str, Any] = {f"{name}_missing": reason for name in measured}
    return {**dict.fromkeys(measured), **missing}


def _sections(measures: LoopMeasures) -> dict[str, Any]:
    return {
        "steps": measures.steps,
        "steps_missing": measures.steps_missing,
        "breakdown": measures.breakdown,
        "breakdown_missing": measures.breakdown_missing,
        "input_wait": measures.input_wait,
        "perturbation": measures.perturbation,
        "perturbation_missing": None if measures.perturbation else measures.steps_missing,
        "differential": measures.differential,
        "differential_missing": measures.differential_missing,
        "ceiling": measures.ceiling,
        "ceiling_missing": None if measures.ceiling else measures.breakdown_missing,
        "pipeline": measures.pipeline,
        "devices": measures.devices,
    }
