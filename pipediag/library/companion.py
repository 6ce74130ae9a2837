"""The main function of the companion process: it decides on trials and makes the session."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pipediag.errors import PipediagError
from pipediag.library.measurement import CompanionRequest
from pipediag.library.notebook import Cells, read_cells
from pipediag.measures.verdict.decision import NOTHING_TRAINED, decide_input_alone
from pipediag.patching.workspace import GONE as NOT_READ
from pipediag.reporters import write_all
from pipediag.runner.analysis import AnalysisRequest, analyse_followed
from pipediag.runner.child_connection import MessageReader, OnTrials
from pipediag.runner.child_process import follow
from pipediag.runner.output import OutputDirectory
from pipediag.runner.progress import OnProgress, Shown
from pipediag.runner.source_files import excerpts
from pipediag.session.files import SESSION_FILE
from pipediag.session.messages import SETTINGS_FILE, ChildResult, Closing, Ended, RunSettings
from pipediag.session.model import Session
from pipediag.session.store import save_session

GONE = 1
"""Status of a program that ended before it was measured."""
CUT_OFF = "The program ended before its measurement was over."

_NO_MEANING = ("run", "breakdown", "input_wait", "perturbation", "differential", "ceiling")
"""Fields without meaning if nothing is trained: shares of the step and of the run."""


class Program:
    """The process that started this one, in the role of a child; nothing is done to it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """0 once it has reported its end."""
        self.cells: Cells = {}
        """Its cells, if it is a notebook."""

    @property
    def is_gone(self) -> bool:
        return os.getppid() != self.pid

    def poll(self) -> int | None:
        """Return its status once it is measured or gone."""
        if self.returncode is None and self.is_gone:
            self.returncode = GONE
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:  # noqa: ARG002
        return self.returncode or 0

    def kill(self) -> None:
        """Do nothing: the user may interrupt what takes too long."""

    def send_signal(self, sig: int) -> None:
        """Do nothing: it receives its own signals."""


def main() -> None:
    """Make the session that the request asks for."""
    request = CompanionRequest.read(Path(sys.argv[-1]))
    program = Program(request.pid)
    directory, capture = Path(request.directory), Path(request.capture)
    output = OutputDirectory(directory, capture, None, True)
    settings = RunSettings.read(capture / SETTINGS_FILE)
    analysis = AnalysisRequest(
        settings.script, budget_s=request.budget_s, run_to_end=settings.run_to_end
    )
    try:
        follow = partial(_follow, program, request)
        session = measured = analyse_followed(analysis, settings, output, follow)
        if settings.input_only:
            session = of_input_alone(session)
        session = with_cells(session, program.cells, source=analysis.source)
        if session is not measured:
            save_session(session, directory / SESSION_FILE)
        if request.kept:
            write_all(session, directory)
    except PipediagError as error:
        sys.exit(str(error))
    if program.is_gone and not request.kept:
        shutil.rmtree(directory, ignore_errors=True)


def _follow(
    program: Program,
    request: CompanionRequest,
    *,
    on_started: Callable[[int], None],
    on_progress: OnProgress,
    on_trials: OnTrials | None,
) -> ChildResult:
    ended: Ended | None = None

    def note(message: Shown) -> None:
        nonlocal ended
        if isinstance(message, Closing):
            program.cells = read_cells(Path(request.capture))
            program.returncode = 0
        elif isinstance(message, Ended):
            ended = message
        on_progress(message)

    try:
        result = follow(
            program,
            MessageReader(request.reading),
            request.writing,
            on_started=on_started,
            on_progress=note,
            on_trials=on_trials,
        )
    finally:
        if request.writing is not None:
            os.close(request.writing)
    result = replace(result, started_ns=request.began_ns)
    if ended is not None:
        return replace(result, script_status=ended.status)
    return replace(result, outcome="killed", script_status=None, detail=CUT_OFF)


def of_input_alone(session: Session) -> Session:
    """Return the session as one of a pipeline alone: no share of a step, no gain of a run."""
    changed: dict[str, Any] = {"verdict": decide_input_alone(session)}
    for name in _NO_MEANING:
        changed[name] = None
        if f"{name}_missing" in Session.model_fields:
            changed[f"{name}_missing"] = NOTHING_TRAINED
    changed["findings"] = [
        finding.model_copy(update={"for_run": None}) for finding in session.findings
    ]
    if session.combined is not None:
        changed["combined"] = session.combined.model_copy(update={"for_run": None})
    return session.model_copy(update=changed)


_NO_FILE = "It is a cell of a notebook: change it there."


def with_cells(session: Session, cells: Cells, *, source: bool) -> Session:
    """Return the session with cells named by number, and with the lines that the verdict names.

    `source` is True if it may hold lines of the program.
    """
    if not cells:
        return session
    if source:
        found = excerpts(session, lambda file: cells[file].source if file in cells else None)
        of_cells = {name: excerpt for name, excerpt in found.items() if excerpt is not None}
        verdict = session.verdict.model_copy(update=of_cells)
        session = session.model_copy(update={"verdict": verdict})
    return Session.model_validate(_renamed(session.model_dump(mode="json"), _names(cells)))


def _names(cells: Cells) -> dict[str, str]:
    names: dict[str, str] = {}
    for file, cell in cells.items():
        short = Path(file).name
        names |= {NOT_READ.format(name=short): _NO_FILE, file: cell.label, short: cell.label}
    return dict(sorted(names.items(), key=lambda one: -len(one[0])))


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    if not isinstance(value, str):
        return value
    for name, label in names.items():
        if name in value:
            value = value.replace(name, label)
    return value
