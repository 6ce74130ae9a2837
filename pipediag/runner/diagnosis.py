"""From what a run left behind to its session: recording, journal, profile and host samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from pipediag import __version__
from pipediag.facts.machine import cores_allowed
from pipediag.facts.order import concluded
from pipediag.measures.host.of_loop import host_of_loop
from pipediag.measures.host.samples import host_samples
from pipediag.measures.loop.chosen import chosen_loop
from pipediag.measures.loop.embeddings import describe_embeddings
from pipediag.measures.loop.loops import loop_rows
from pipediag.measures.loop.measures import LoopSections, MeasuredLoop, measure_loop
from pipediag.measures.missing import Missing
from pipediag.measures.recorded_windows import window_rows
from pipediag.measures.run.first_waits import with_first_waits_told
from pipediag.measures.run.given_epochs import told_as_given, with_given_epochs
from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.measures.verdict.decision import decide
from pipediag.rules.registry import run_rules
from pipediag.runner.supervisor import ChildResult
from pipediag.sensors.machine import describe_machine
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Verdict
from pipediag.session.host import HostSample
from pipediag.session.host_track import HostTrack
from pipediag.session.ledger import Run
from pipediag.session.loops import Loop
from pipediag.session.model import SCHEMA_VERSION, Session
from pipediag.session.reading import read_journal, read_recording, read_timeline, recover
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.run import Environment, OtherProcesses, OtherUse, ProfilerConflict, Script
from pipediag.session.settings import JOURNAL_FILE, RECORDING_FILE, TIMELINE_FILE, RunSettings
from pipediag.session.steps import Window
from pipediag.session.timeline import Timeline

NO_RECORDING = "The script ended before TensorFlow was seen, so nothing was recorded."
NO_LOOP = "No training loop was seen."

UNDECIDED = Verdict(
    bottleneck="inconclusive",
    severity="unknown",
    summary="The verdict was not reached.",
    confidence="low",
    reasons=[],
)
"""What a session holds until its verdict is decided, as that rests on all the rest of it."""


@dataclass(frozen=True)
class RunFacts:
    """What holds for the run whether or not there was a training loop."""

    environment: Environment
    loops: list[Loop] = field(default_factory=list)
    embeddings: list[Embedding] = field(default_factory=list)
    embeddings_missing: str | None = None
    windows: list[Window] = field(default_factory=list)
    host_samples: list[HostSample] = field(default_factory=list)
    other_uses: list[OtherUse] = field(default_factory=list)
    profiler_conflicts: list[ProfilerConflict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    run: Run | None = None
    run_missing: str | None = None


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
    if recording is None:
        run = RunFacts(describe_machine(None), run_missing=NO_RECORDING)
        measured = MeasuredLoop(LoopSections.lacking(NO_RECORDING))
    else:
        as_written = recording
        if settings.epochs is not None:
            recording = with_given_epochs(recording, settings.epochs)
        recovered = recover(recording, read_journal(capture_directory / JOURNAL_FILE))
        loop, chosen = chosen_loop(recording, settings.loop)
        timeline = read_timeline(capture_directory / TIMELINE_FILE)
        bounds = RunBounds(
            child.started_ns, child.ended_ns, child.outcome, child.script_status, child.held_ns
        )
        ledger = measure_run(timeline, recording, bounds)
        given = None
        if isinstance(ledger, Run) and settings.epochs is not None:
            ledger, given = told_as_given(ledger, as_written, settings.epochs)
        run = _facts_of(recording, loop, host, recovered, ledger)
        run.notes.extend([*chosen, *([given] if given else [])])
        measured = _measured(timeline, recording, loop, host, cores_allowed(run.environment))
    draft = Session(
        schema_version=SCHEMA_VERSION,
        pipediag_version=__version__,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        script=_script(child, settings),
        environment=run.environment,
        verdict=UNDECIDED,
        run=run.run,
        run_missing=run.run_missing,
        embeddings=run.embeddings,
        embeddings_missing=run.embeddings_missing,
        device_memory_bytes=settings.device_memory_bytes,
        loops=run.loops,
        windows=run.windows,
        host_samples=run.host_samples,
        other_uses=run.other_uses,
        other_processes=_other_processes(host),
        profiler_conflicts=run.profiler_conflicts,
        notes=[*run.notes, *measured.notes],
        wall_s=(child.ended_ns - child.started_ns) / 1e9,
        **measured.sections.as_fields(),
    )
    draft = with_first_waits_told(draft)
    decided = draft.model_copy(update={"verdict": decide(draft)})
    return concluded(decided, run_rules(decided))


def _script(child: ChildResult, settings: RunSettings) -> Script:
    return Script(
        path=settings.script,
        args=list(settings.args),
        module=settings.module,
        directory=None if settings.call else str(Path.cwd()),
        call=settings.call,
        interval=settings.interval,
        status=child.script_status,
        outcome=child.outcome,
        detail=child.detail,
    )


def _facts_of(
    recording: Recording,
    loop: RecordedLoop | None,
    host: HostTrack,
    recovered: int,
    ledger: Run | Missing,
) -> RunFacts:
    environment = describe_machine(recording.environment)
    notes = list(recording.notes)
    if recovered:
        notes.append(
            f"{recovered} steps were recovered from the journal: the process ended before it could "
            "write them down."
        )
    return RunFacts(
        environment=environment,
        loops=loop_rows(recording, loop),
        embeddings=describe_embeddings(recording.variables),
        embeddings_missing=None if loop is None else loop.tables_missing,
        windows=window_rows(recording),
        host_samples=host_samples(
            host, recording.windows, recording.started_ns, cores_allowed(environment)
        ),
        other_uses=[OtherUse(**asdict(use)) for use in recording.other_uses],
        profiler_conflicts=[
            ProfilerConflict(**asdict(conflict)) for conflict in recording.profiler_conflicts
        ],
        notes=notes,
        run=None if isinstance(ledger, Missing) else ledger,
        run_missing=ledger.reason if isinstance(ledger, Missing) else None,
    )


def _measured(
    timeline: Timeline,
    recording: Recording,
    loop: RecordedLoop | None,
    track: HostTrack,
    cores_allowed: float,
) -> MeasuredLoop:
    if loop is None:
        return MeasuredLoop(LoopSections.lacking(NO_LOOP))
    host = host_of_loop(track, recording, loop, cores_allowed)
    return measure_loop(timeline, recording, loop, host)


def _other_processes(host: HostTrack) -> OtherProcesses | None:
    last = host.readings[-1] if host.readings else None
    if last is None or not last.children:
        return None
    return OtherProcesses(count=last.children, cpu_s=last.children_cpu_ns / 1e9)
