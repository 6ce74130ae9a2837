"""An analysis of a patched script, and one patch with what it and the analysis before it found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import ExitStatus, PipediagError
from pipediag.facts.script import cut_short, ending, script_failure
from pipediag.patching.making import measured_files, patch_root, patched_files, unified
from pipediag.runner.analysis import BUDGET_S, AnalysisRequest, analyse
from pipediag.runner.progress import OnProgress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipediag.session.model import Session

FILES = "patched files"
"""Directory of the files that are run in place of the script's, next to the second report."""


@dataclass(frozen=True)
class PatchedAnalysis:
    """A session of the patched script, and the files with the patches of both analyses."""

    session: Session
    contents: dict[str, bytes]
    """Files by the paths that they have in the script."""
    diff: str


def analyse_patched(
    session: Session, contents: Mapping[str, bytes], report: Path, on_progress: OnProgress
) -> PatchedAnalysis:
    """Analyse a script with patched files in place of its own, which stay as they are.

    Raises PipediagError: the script can't be run again or failed with the patch, or one of its
    files was edited meanwhile. KeyboardInterrupt: Ctrl-C ended it.
    """
    script = session.script
    folder = Path(script.directory or "")
    main = os.path.realpath(folder / script.path)
    known = folder.is_dir() if script.module else Path(main).is_file()
    if script.call is not None or not known:
        raise PipediagError(
            f"{script.path} can't be analysed again with the patch: only a module can, or a script "
            "that is still there. Apply the patch, and analyse it."
        )
    try:
        # The main file, too: each of the program's files is known by one path then.
        run = {} if script.module else {main: Path(main).read_bytes()}
        run |= {os.path.realpath(path): data for path, data in contents.items()}
        copies = {
            path: _copy(path, data, folder, report.absolute() / FILES) for path, data in run.items()
        }
    except OSError as error:
        raise PipediagError(
            f"The patched files could not be written to {report}: {error.strerror}. Nothing was "
            "changed. Copy the report to a directory that can be written to, and name that one."
        ) from error
    request = AnalysisRequest(
        script=script.path,
        args=tuple(script.args),
        module=script.module,
        output=report.absolute(),
        force=True,
        steps=script.steps,
        loop=loop_line(session, contents),
        timeout_s=script.timeout_s,
        device_memory_bytes=session.device_memory_bytes,
        rerun=script.second_run is not None,
        script_output_to_stderr=True,
        replaced_files=copies,
    )
    if session.trials is not None:
        given_s = session.trials.given_s or session.trials.budget_s
        spare_s = BUDGET_S if given_s == BUDGET_S else 0.0
        request = replace(request, budget_s=given_s, spare_s=spare_s)
    if session.run is not None and session.run.epochs_given:
        request = replace(request, epochs=session.run.epochs_planned)
    with _in_directory(folder):
        found = analyse(request, on_progress).session
    _refuse_what_failed(session, found)
    if session.patch is not None:
        measured_files(session.patch)
    own = {other: path for path, other in copies.items()}
    made = patched_files(found, found.patch) if found.patch is not None else {}
    names = {os.path.realpath(path): path for path in contents}
    files = {**contents}
    for path, data in made.items():
        original = own.get(path, path)
        files[names.get(original, original)] = data
    root = patch_root(files, script.directory)
    diff = "".join(
        unified(path, Path(path).read_bytes(), data, root) for path, data in sorted(files.items())
    )
    return PatchedAnalysis(found, files, diff)


def _refuse_what_failed(first: Session, found: Session) -> None:
    """Refuse a patched script that failed and would not have done so without the patch. What ran
    out of time may have shown enough."""
    script = found.script
    if script.outcome == "interrupted":
        raise KeyboardInterrupt
    worse = cut_short(script) and not cut_short(first.script) and script.outcome != "timed-out"
    if worse or script_failure(found) is not None:
        raise PipediagError(
            f"The patched script failed: {ending(script)} Nothing was changed.",
            ExitStatus.SCRIPT_FAILED,
        )


def loop_line(session: Session, contents: Mapping[str, bytes]) -> int | None:
    """Return the line that `--loop` gave as it is in the patched files; None where none, or
    another one, has its text, as nothing is measured where no loop is at the line that is given."""
    line, loop = session.script.loop, session.diagnosed_loop()
    if line is None or loop is None or loop.file is None:
        return None
    file = os.path.realpath(Path(session.script.directory or "", loop.file))
    after = next((data for path, data in contents.items() if os.path.realpath(path) == file), None)
    if after is None:
        return line
    text, lines = Path(file).read_bytes().split(b"\n")[line - 1], after.split(b"\n")
    return lines.index(text) + 1 if lines.count(text) == 1 else None


def _copy(path: str, data: bytes, folder: Path, into: Path) -> str:
    """Write a file as it stands in the script's directory, below another one."""
    own, real = Path(path), Path(os.path.realpath(folder))
    copy = into / own.relative_to(real if own.is_relative_to(real) else own.anchor)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(data)
    return str(copy)


@contextmanager
def _in_directory(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
