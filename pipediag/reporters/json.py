"""The session as JSON: the same text as the `session.json` of the run."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import dump_session


def files(session: Session) -> Iterator[tuple[str, str]]:
    """The one file that all other reports can be made from again."""
    yield SESSION_FILE, dump_session(session)
