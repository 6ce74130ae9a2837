"""One analysis from start to end: run the script, turn what was seen into a session, report it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.runner.output import OutputDirectory, prepare_output
from pipediag.runner.progress import OnProgress
from pipediag.runner.supervisor import ChildResult, supervise
from pipediag.runner.target import check_script
from pipediag.session.settings import RunSettings

if TYPE_CHECKING:
    from pipediag.session.host_track import HostTrack
    from pipediag.session.model import Session

REPORTS = "reports"


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
    output = prepare_output(request.output or default_output(request), request.force)
    settings = _settings(request, output)
    child, host = _run(request, settings, output, on_progress)
    session = _record(settings, child, host, output)
    _report(session, output)
    return AnalysisResult(session, output.path, output.kept_aside, child)


def default_output(request: AnalysisRequest) -> Path:
    """`reports/<script stem>`; a module goes by its full name, a directory by its own."""
    name = request.script if request.module else Path(request.script).resolve().stem
    return Path(REPORTS) / name


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


def _run(
    request: AnalysisRequest,
    settings: RunSettings,
    output: OutputDirectory,
    on_progress: OnProgress,
) -> tuple[ChildResult, HostTrack]:
    from pipediag.runner.host_sampler import HostSampler

    sampler = HostSampler()
    try:
        child = supervise(
            settings,
            timeout_s=request.timeout_s,
            on_started=sampler.start,
            on_progress=on_progress,
            json_mode=request.script_output_to_stderr,
        )
    except PipediagError:
        output.abandon()
        raise
    finally:
        host = sampler.stop()
    return child, host


def _record(
    settings: RunSettings, child: ChildResult, host: HostTrack, output: OutputDirectory
) -> Session:
    from pipediag.runner.diagnosis import diagnose
    from pipediag.session.store import save_session

    with _keeping_the_recording(output):
        session = diagnose(output.capture, child, host, settings)
        save_session(session, output.path)
        output.keep_trace()
    output.discard_capture()
    return session


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
