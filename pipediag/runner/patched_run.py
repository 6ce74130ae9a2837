"""What the patch of a session obtains for a whole run, held against what was promised."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.facts.whole_run import gain_of_whole
from pipediag.runner.native_runs import Obtained, obtained
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session


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
    tell: Callable[[Path, float], None],
    timeout_s: float | None = None,
) -> Obtained:
    """What the script takes against its patched copy, which lies beside it meanwhile.

    Raises:
        PipediagError: it is no script whose copy can be run, or one of the runs failed.
    """
    script = Path(session.script.path)
    if session.script.module or not script.is_file():
        raise PipediagError(
            f"{session.script.path} is not a script that can be run from here, so nothing was "
            "verified. Run this in the directory that it was analysed in."
        )
    if [Path(path).resolve() for path in contents] != [script.resolve()]:
        raise PipediagError(
            "The patch changes modules that the script imports, of which no copy can be run beside "
            "them. Apply it in a copy of the project, and time both."
        )
    (content,) = contents.values()
    with _copy_beside(script, content) as copy:
        args = session.script.args
        return obtained((script, copy), rounds, args=args, tell=tell, timeout_s=timeout_s)


@contextmanager
def _copy_beside(script: Path, content: bytes) -> Iterator[Path]:
    """A copy in the same folder, so that it finds the modules and files that the script finds."""
    try:
        descriptor, name = tempfile.mkstemp(
            dir=script.parent, prefix=f"{script.stem}_patched_", suffix=".py"
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise PipediagError(
            f"A patched copy can't be written beside {script}: {error.strerror}. Nothing was "
            "verified."
        ) from error
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
