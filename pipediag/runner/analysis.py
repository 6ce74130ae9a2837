"""One analysis from start to end: run the script, turn what was seen into a session, report it."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.facts.names import as_typed, default_directory
from pipediag.interrupts import INTERRUPTS
from pipediag.runner.child_connection import Ask
from pipediag.runner.child_process import supervise
from pipediag.runner.output import CAPTURE_PREFIX, OutputDirectory, prepare_output
from pipediag.runner.progress import OnProgress, Shown
from pipediag.session.messages import ChildResult, RunOptions, RunSettings, TrialsAwaited
from pipediag.session.worker import worker_of
from pipediag.tensorflow_names import OLDEST, installed_builds, is_too_old, too_old_sentence

if TYPE_CHECKING:
    from pipediag.runner.build_session import EndedRun
    from pipediag.runner.trials_of_run import TrialsOfRun
    from pipediag.session.model import Session

_WARMUP_IN_JOB, _STEPS_IN_JOB = 20, 30
"""Steps of the windows of each worker of a job: counts, as by times each worker would choose others
and sessions of different steps could not be joined. Own choice: as for one process."""


BUDGET_S = 90.0


@dataclass(frozen=True)
class AnalysisRequest(RunOptions):
    """Options of `pipediag analyze`."""

    script: str
    args: tuple[str, ...] = ()
    module: bool = False
    output: Path | None = None
    """Directory of the report; None: `reports/<script stem>` in the working directory."""
    force: bool = False
    timeout_s: float | None = None
    budget_s: float = BUDGET_S
    """Time for trials; 0 is none."""
    spare_s: float = 0.0
    """Time beside that for trials of whole epochs, where their waits take much of the run."""
    rerun: bool = False
    """Run a script that was over too soon a second time, for trials only."""
    script_output_to_stderr: bool = False
    replaced_files: dict[str, str] | None = None
    """Files that are run in place of the script's, by the real paths of these."""
    source: bool = field(default_factory=lambda: not os.environ.get("PIPEDIAG_NO_SOURCE"))
    """True if the session may hold code of the script; without it there is no patch."""


Supervise = Callable[..., ChildResult]
"""`supervise`, or the same for a program that was there before. Keywords are `on_started`,
`on_progress` and `on_trials`."""


@dataclass(frozen=True)
class AnalysisResult:
    """A session, where its report is, and how the script ended."""

    session: Session
    directory: Path
    kept_aside: Path | None
    """New place of the report that was in the directory before."""
    child: ChildResult
    report_failure: str | None = None
    """The reports that could not be written and why; all others were, and the session is saved."""


def analyse(request: AnalysisRequest, on_progress: OnProgress) -> AnalysisResult:
    """Run the script, write the session and the reports, return the session. A report that could
    not be written is no error: the result says it.

    Raises PipediagError: the script cannot be run or measured, or something could not be written;
    what was measured by then is kept, and the error says where. KeyboardInterrupt: Ctrl-C came
    before the script was run.
    """
    INTERRUPTS.finish_first()
    if not request.module:
        check_script(request.script)
    check_tensorflow()
    directory = request.output or default_directory(request.script, module=request.module)
    worker = worker_of()
    if worker is not None:
        # Workers may share a disk, and are started with the same command.
        directory /= worker.name
    output = prepare_output(directory, request.force)
    settings = _settings(request, output, in_job=worker is not None)
    try:
        start = partial(
            supervise,
            settings,
            timeout_s=request.timeout_s,
            json_mode=request.script_output_to_stderr,
        )
        run = _run(request, output, settings, on_progress, start)
        session = _conclude(run, on_progress)
        failure = _report(session, output)
    finally:
        output.release()
    return AnalysisResult(session, output.path, output.kept_aside, run.child, failure)


def analyse_followed(
    request: AnalysisRequest,
    settings: RunSettings,
    output: OutputDirectory,
    follow: Supervise,
) -> Session:
    """Return the session of a program that is followed while it measures itself, saved in `output`.
    Raises PipediagError: something could not be written."""
    run = _run(request, output, settings, silent, follow)
    return _conclude(run, silent)


def _settings(request: AnalysisRequest, output: OutputDirectory, *, in_job: bool) -> RunSettings:
    options = {one.name: getattr(request, one.name) for one in fields(RunOptions)}
    if in_job and options["steps"] is None:
        options["steps"] = _STEPS_IN_JOB
    return RunSettings(
        script=request.script,
        args=request.args,
        module=request.module,
        capture_directory=str(output.capture),
        **options,
        warmup=_WARMUP_IN_JOB if in_job else None,
        look_ahead_s=float(os.environ.get("PIPEDIAG_LOOK_AHEAD_S", RunSettings.look_ahead_s)),
        budget_s=request.budget_s,
        replaced_files=request.replaced_files,
        safe_path=bool(getattr(sys.flags, "safe_path", sys.flags.isolated)),
    )


def _run(
    request: AnalysisRequest,
    output: OutputDirectory,
    settings: RunSettings,
    on_progress: OnProgress,
    start: Supervise,
) -> EndedRun:
    from pipediag.sensors.host_sampler import HostSampler

    sampler = HostSampler()
    # A run that counts is never touched.
    tries = request.budget_s > 0 and not request.run_to_end
    started_ns, began_s = time.monotonic_ns(), time.time()

    def draft() -> Session:
        from pipediag.runner.build_session import diagnose
        from pipediag.session.files import SESSION_FILE
        from pipediag.session.store import save_session

        what = "It was waiting for pipediag's trials."
        waiting = ChildResult("stopped", None, what, started_ns, time.monotonic_ns())
        session = diagnose(waiting, sampler.so_far(), settings, source=request.source)
        # From here on nothing that was measured can be lost, whatever a trial does. The file is
        # named, as the script may have removed the directory.
        save_session(session, output.path / SESSION_FILE)
        return session

    tried: TrialsOfRun | None = None

    def on_trials(waiting: TrialsAwaited, ask: Ask) -> None:
        nonlocal tried
        # Imported while the script stands, not before it may begin.
        from pipediag.runner.trials_of_run import TrialsOfRun

        if tried is None:
            tried = TrialsOfRun(
                draft, on_progress, request.budget_s, request.spare_s, rerun=request.rerun
            )
        tried(waiting, ask)

    if INTERRUPTS.came:
        output.abandon()
        raise KeyboardInterrupt
    try:
        child = start(
            on_started=sampler.start,
            on_progress=on_progress,
            on_trials=on_trials if tries else None,
        )
    except PipediagError:
        output.abandon()
        raise
    finally:
        host = sampler.stop()
    # Imported after the script was started, as it brings pydantic and numpy along.
    from pipediag.runner.build_session import EndedRun

    return EndedRun(request, settings, output, child, host, tried, began_s)


def _conclude(run: EndedRun, on_progress: OnProgress) -> Session:
    """Save the session; try in a second run what the first one was over too soon for."""
    from pipediag.runner.build_session import record, with_second_run

    first = record(run)
    if first.recording is None:
        return first.session
    from pipediag.runner.second_run import second_run

    with TemporaryDirectory(
        prefix=CAPTURE_PREFIX, dir=run.output.path, ignore_cleanup_errors=True
    ) as capture:
        second = second_run(first, Path(capture), on_progress)
    return first.session if second is None else with_second_run(first, second)


def _report(session: Session, output: OutputDirectory) -> str | None:
    """Write all reports; return what to say where one of them could not be written."""
    from pipediag.reporters import write_all

    try:
        write_all(session, output.path)
    except PipediagError as error:
        where = as_typed(output.path)
        return (
            f"{error}\nThe session is safe in {where}: `pipediag show {where} --format csv` "
            "and `--format html` make the reports from it, without running the script again."
        )
    return None


def silent(_: Shown) -> None:
    """Show nothing."""


def check_script(path: str) -> None:
    """Refuse what can't be read more than once, as a pipe. Raises PipediagError."""
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise PipediagError(f"cannot run {path}: {error.strerror}.") from error
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise PipediagError(
            f"cannot run {path}: it is not a regular file. Save the script to a file first, "
            "because it is read more than once."
        )


def check_tensorflow() -> None:
    """Refuse a TensorFlow that can't be measured, where the installer noted which one is there.
    Raises PipediagError."""
    versions = list(installed_builds().values())
    if versions and all(map(is_too_old, versions)):
        oldest = ".".join(map(str, OLDEST))
        raise PipediagError(
            f"{too_old_sentence(versions[0])} The script was not run. Install pipediag "
            f"with TensorFlow {oldest} or newer."
        )
