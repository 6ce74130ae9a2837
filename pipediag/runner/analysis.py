"""One analysis from start to end: run the script, turn what was seen into a session, report it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.facts.report_directory import default_directory
from pipediag.runner.asking import Ask
from pipediag.runner.output import OutputDirectory, prepare_output
from pipediag.runner.progress import OnProgress, Shown
from pipediag.runner.supervisor import ChildResult, child_that_waits, supervise
from pipediag.runner.target import check_script
from pipediag.session.messages import TrialsAwaited, WindowBegun
from pipediag.session.settings import RunSettings

if TYPE_CHECKING:
    from pipediag.runner.trials_of_run import TrialsOfRun
    from pipediag.session.host_track import HostTrack
    from pipediag.session.model import Session
    from pipediag.trials.outcome import TrialOutcome

NO_BUDGET = "No trials were asked for (`--budget 0`)."
NOT_WAITED = "The script ended before its loop was measured and could be held for trials."


@dataclass(frozen=True)
class AnalysisRequest:
    """What `pipediag analyze` was asked for."""

    script: str
    args: tuple[str, ...] = ()
    module: bool = False
    output: Path | None = None
    """None: `reports/<script stem>` in the working directory."""
    force: bool = False
    steps: int | None = None
    warmup: int | None = None
    profile_steps: int | None = None
    look_ahead_s: float = 5.0
    timeout_s: float | None = None
    run_to_end: bool = False
    budget_s: float = 60.0
    """Time for trials; 0 is none."""
    script_output_to_stderr: bool = False


@dataclass(frozen=True)
class AnalysisResult:
    """What came of it."""

    session: Session
    directory: Path
    kept_aside: Path | None
    """Where the report that was in the directory before is now."""
    child: ChildResult


def analyse(request: AnalysisRequest, on_progress: OnProgress) -> AnalysisResult:
    """Run the script, write the session and the reports, return the session.

    Raises:
        PipediagError: the script cannot be run, or something could not be written. What was
            measured by then is kept, and the error says where.
    """
    if not request.module:
        check_script(request.script)
    output = prepare_output(
        request.output or default_directory(request.script, module=request.module), request.force
    )
    settings = _settings(request, output)
    try:
        run = _run(request, settings, output, on_progress)
        session = _record(settings, run, request.budget_s, output)
        _report(session, output)
    finally:
        output.release()
    return AnalysisResult(session, output.path, output.kept_aside, run.child)


def _settings(request: AnalysisRequest, output: OutputDirectory) -> RunSettings:
    return RunSettings(
        script=request.script,
        args=request.args,
        module=request.module,
        capture_directory=str(output.capture),
        steps=request.steps,
        warmup=request.warmup,
        profile_steps=request.profile_steps,
        run_to_end=request.run_to_end,
        look_ahead_s=request.look_ahead_s,
        safe_path=sys.flags.safe_path,
    )


@dataclass(frozen=True)
class _Run:
    """What the parent holds when the child has ended."""

    child: ChildResult
    host: HostTrack
    outcomes: dict[str, TrialOutcome]
    trials_fault: str | None
    began_s: float
    """Time of day at which it was started."""


def _run(
    request: AnalysisRequest,
    settings: RunSettings,
    output: OutputDirectory,
    on_progress: OnProgress,
) -> _Run:
    from pipediag.runner.imports import EarlyImports
    from pipediag.sensors.host_sampler import HostSampler

    sampler = HostSampler()
    imports = EarlyImports(trials=request.budget_s > 0)
    started_ns, began_s = time.monotonic_ns(), time.time()

    def draft() -> Session:
        from pipediag.runner.diagnosis import diagnose
        from pipediag.session.files import SESSION_FILE
        from pipediag.session.store import save_session

        waiting = child_that_waits(started_ns)
        session = diagnose(output.capture, waiting, sampler.so_far(), settings)
        # From here on nothing that was measured can be lost, whatever a trial does. The file is
        # named, as the script may have removed the directory.
        save_session(session, output.path / SESSION_FILE)
        return session

    def begin(pid: int) -> None:
        sampler.start(pid)
        imports.start()

    def follow(message: Shown) -> None:
        if isinstance(message, WindowBegun):
            imports.stop()
        on_progress(message)

    tried: TrialsOfRun | None = None

    def on_trials(waiting: TrialsAwaited, ask: Ask) -> None:
        nonlocal tried
        # Imported while the script trains, not before it may begin.
        from pipediag.runner.trials_of_run import TrialsOfRun

        if tried is None:
            tried = TrialsOfRun(
                draft,
                on_progress,
                request.budget_s,
                run_to_end=request.run_to_end,
                look_ahead_s=request.look_ahead_s,
            )
        tried(waiting, ask)

    try:
        child = supervise(
            settings,
            timeout_s=request.timeout_s,
            on_started=begin,
            on_progress=follow,
            on_trials=on_trials if request.budget_s > 0 else None,
            json_mode=request.script_output_to_stderr,
        )
    except PipediagError:
        output.abandon()
        raise
    finally:
        imports.close()
        host = sampler.stop()
    outcomes, fault = (tried.outcomes, tried.fault) if tried else ({}, None)
    return _Run(child, host, outcomes, fault, began_s)


def _record(settings: RunSettings, run: _Run, budget_s: float, output: OutputDirectory) -> Session:
    from pipediag.runner.diagnosis import diagnose
    from pipediag.runner.tried_session import with_trials
    from pipediag.session.files import SESSION_FILE
    from pipediag.session.store import save_session

    with _keeping_the_recording(output):
        session = diagnose(output.capture, run.child, run.host, settings)
        missing = run.trials_fault or (NOT_WAITED if budget_s > 0 else NO_BUDGET)
        session = with_trials(session, run.outcomes, missing)
        session = _with_written_files(session, settings, run.began_s, output)
        save_session(session, output.path / SESSION_FILE)
        output.keep_trace()
    output.discard_capture()
    return session


def _with_written_files(
    session: Session, settings: RunSettings, began_s: float, output: OutputDirectory
) -> Session:
    """A script that was stopped may have left files that mislead its next run."""
    from pipediag.runner.written_files import MOST_NAMED, sentence, written_since

    if session.script.outcome != "stopped":
        return session
    folders = [Path.cwd(), *([] if settings.module else [Path(settings.script).parent])]
    aside = [output.kept_aside] if output.kept_aside is not None else []
    files = written_since(began_s, folders, [output.path, *aside])
    if not files:
        return session
    script = session.script.model_copy(update={"files_written": files[:MOST_NAMED]})
    return session.model_copy(update={"script": script, "notes": [*session.notes, sentence(files)]})


@contextmanager
def _keeping_the_recording(output: OutputDirectory) -> Iterator[None]:
    """On any failure, leave what the child wrote where it is, and say so."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"What was recorded is kept in {output.capture}")
        raise


def _report(session: Session, output: OutputDirectory) -> None:
    from pipediag.reporters import write_all

    try:
        write_all(session, output.path)
    except PipediagError as error:
        error.add_note(
            f"The session is safe in {output.path}: `pipediag report {output.path}` makes the "
            "reports from it, without running the script again."
        )
        raise
