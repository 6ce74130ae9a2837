"""How a script ended, where that is not how it was meant to."""

from __future__ import annotations

import signal

from pipediag.session.model import Session
from pipediag.session.run import Script
from pipediag.vocabulary import CUT_SHORT, ScriptOutcome

_ENDED_BY_NOBODY_ELSE: tuple[ScriptOutcome, ...] = ("raised", "killed", "exited")
_FROM_OUTSIDE: frozenset[ScriptOutcome] = frozenset({"interrupted", "timed-out"})
_ASKED_TO_END = frozenset({-signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT})


def cut_short(script: Script) -> bool:
    """Whether it failed or was ended before its end, by its outcome or its own status."""
    return script.outcome in CUT_SHORT or script.status not in (None, 0)


def ended_from_outside(outcome: ScriptOutcome, status: int | None) -> bool:
    """Whether `--timeout` or a signal that asks for it did: it would have gone on by itself.

    A script that raised, or that the system killed, would not: what it took is all that it takes.
    """
    return outcome in _FROM_OUTSIDE or (outcome == "killed" and status in _ASKED_TO_END)


def ending(script: Script) -> str:
    """How it ended, as the end of a sentence."""
    said = (script.detail or script.outcome).rstrip(".")
    if script.status is None:
        return f"{said}."
    return f"{said} (its own status: {script.status})."


def script_failure(session: Session) -> str | None:
    """How the script failed before enough steps were seen, in a sentence; None if it did not."""
    script = session.script
    if not cut_short(script) or (session.steps is not None and session.breakdown is not None):
        return None
    return f"The script ended before enough steps were seen: {ending(script)}"


def failed_by_itself(session: Session) -> str | None:
    """The same of a script that nobody ended: what its run took until then is nothing to shorten
    before that."""
    return script_failure(session) if session.script.outcome in _ENDED_BY_NOBODY_ELSE else None
