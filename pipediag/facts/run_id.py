"""What tells the rows of one run from those of another, where tables are put together."""

from __future__ import annotations

import hashlib

from pipediag.session.model import Session


def run_id(session: Session) -> str:
    """The same for the same session, and as good as certain to be another's for none.

    It begins with a letter: digits with an `e` among them would be read as a number.
    """
    script = session.script
    told = (
        session.created_at,
        script.path,
        *script.args,
        session.environment.fingerprint,
        repr(session.wall_s),
    )
    digest = hashlib.sha256("\0".join(told).encode("utf-8", "surrogatepass")).hexdigest()
    return f"r{digest[:11]}"
