"""How a script ended, where that is not how it was meant to."""

from __future__ import annotations

from pipediag.session.run import Script
from pipediag.vocabulary import CUT_SHORT


def cut_short(script: Script) -> bool:
    """Whether it failed or was ended before its end, by its outcome or its own status."""
    return script.outcome in CUT_SHORT or script.status not in (None, 0)


def ending(script: Script) -> str:
    """How it ended, as the end of a sentence."""
    said = (script.detail or script.outcome).rstrip(".")
    if script.status is None:
        return f"{said}."
    return f"{said} (its own status: {script.status})."
