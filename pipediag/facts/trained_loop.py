"""The loop whose memory and tables are planned with."""

from __future__ import annotations

from pipediag.session.loops import Loop
from pipediag.session.model import Session


def trained_loop(session: Session) -> Loop | None:
    """The one that the session diagnoses, or the first that trains: few steps diagnose none."""
    loop = session.diagnosed_loop()
    if loop is None:
        loop = next((one for one in session.loops if one.role == "training"), None)
    return loop
