"""What has changed since the report that was in the directory before."""

from __future__ import annotations

import shlex
from pathlib import Path

from pipediag.cli.say import say
from pipediag.comparison.since import since
from pipediag.errors import PipediagError
from pipediag.session.model import Session
from pipediag.session.store import load_session


def say_since(earlier: Path, session: Session, directory: Path) -> None:
    """Says where the earlier report is, and before and after where the two compare.

    Args:
        earlier: the directory that it was moved to.
        session: the one that took its place.
        directory: where that is.
    """
    kept = f"pipediag: the earlier report is kept in {earlier}"
    changes = _since(earlier, session)
    if not changes:
        say(kept)
        return
    say(f"{kept}. Since then:")
    for line in changes:
        say(f"  {line}")
    command = shlex.join(["pipediag", "compare", str(earlier), str(directory)])
    say(f"Whether that is more than chance: {command} (--format html makes a page of it)")


def _since(earlier: Path, session: Session) -> list[str]:
    try:
        return since(load_session(earlier), session)
    except PipediagError:
        # That of a run which was cut short, or of a version that this one can't read.
        return []
