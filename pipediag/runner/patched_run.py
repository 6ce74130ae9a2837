"""What the patch of a session obtains for a whole run, held against what was promised."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.facts.whole_run import gain_of_whole
from pipediag.runner.native_runs import NativeRun, Obtained, obtained
from pipediag.runner.supervisor import CHILD
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.session.run import Script
from pipediag.session.settings import RunSettings


def promised(session: Session) -> RunGain | None:
    """What the session says of the run with all that is in its patch; None where it says nothing.

    Where the patch holds less than what was tried together, only a single edit was measured so.
    """
    edits = set(session.patch.edits) if session.patch else set()
    together = session.combined
    if together is not None and set(together.findings) == edits and together.for_run is not None:
        return together.for_run
    gains = {f.edit.id: f.for_run for f in session.findings if f.edit is not None}
    return gains.get(next(iter(edits))) if len(edits) == 1 else None


def promised_of_whole(session: Session, script_s: float) -> RunGain | None:
    """The same, of all that the script takes: of some it is not known how long they train.

    Args:
        session: of the script.
        script_s: what it takes without pipediag, from start to exit, in seconds.
    """
    return gain_of_whole(promised(session), session.run, script_s)


def measured(
    session: Session,
    contents: Mapping[str, bytes],
    rounds: int,
    tell: Callable[[str, float], None],
    timeout_s: float | None = None,
) -> Obtained:
    """What the program takes against itself with patched files, which lie elsewhere meanwhile.

    Both run in the working directory and with the arguments of the session.

    Raises:
        PipediagError: it can't be run again, or one of the runs failed.
    """
    script = session.script
    directory = Path(script.directory or Path.cwd())
    if script.call is not None or not directory.is_dir():
        reason = f"its directory {directory} is gone" if script.call is None else "it was no script"
        raise PipediagError(f"{script.path} can't be run again, as {reason}. Nothing was verified.")
    name = f"-m {script.path}" if script.module else Path(script.path).name
    with tempfile.TemporaryDirectory(prefix="pipediag-verify-") as folder:
        replaced = {}
        for number, (path, content) in enumerate(contents.items()):
            copy = Path(folder, str(number), Path(path).name)
            copy.parent.mkdir()
            copy.write_bytes(content)
            replaced[path] = str(copy)
        runs = (
            _native(script, name, {}, directory, Path(folder, "script.json")),
            _native(script, f"{name}, patched", replaced, directory, Path(folder, "patched.json")),
        )
        return obtained(runs, rounds, tell=tell, timeout_s=timeout_s)


def _native(
    script: Script, name: str, replaced: dict[str, str], directory: Path, settings: Path
) -> NativeRun:
    RunSettings(
        script=script.path,
        args=tuple(script.args),
        module=script.module,
        capture_directory="",
        replaced_files=replaced,
    ).write(settings)
    command = (sys.executable, str(CHILD), "native", str(settings))
    return NativeRun(name, command, directory)
