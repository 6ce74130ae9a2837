"""The end of the script, and edits that a second run of it could try.

A second run repeats whatever the script does, so it is made only where `--rerun` asks for it.
"""

from __future__ import annotations

import signal

from pipediag.session.edits import Edit
from pipediag.session.model import Script, Session
from pipediag.session.trials import NO_BUDGET
from pipediag.vocabulary import CUT_SHORT, FindingStatus, LoopKind, ScriptOutcome

_ENDED_BY_ITSELF: tuple[ScriptOutcome, ...] = ("raised", "killed", "exited")
_FROM_OUTSIDE: frozenset[ScriptOutcome] = frozenset({"interrupted", "timed-out"})
_ASKED_TO_END = frozenset({-signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT})


def cut_short(script: Script) -> bool:
    """Return True if it failed or was ended before its end, by its outcome or its own status."""
    return script.outcome in CUT_SHORT or script.status not in (None, 0)


def ended_from_outside(outcome: ScriptOutcome, status: int | None) -> bool:
    """Return True if `--timeout` or a signal asked it to end: it would have gone on by itself.

    A script that raised, or that the system killed, would not: what it took is all that it takes.
    """
    return outcome in _FROM_OUTSIDE or (outcome == "killed" and status in _ASKED_TO_END)


def ending(script: Script) -> str:
    """Return how it ended, as the end of a sentence."""
    words = (script.detail or script.outcome).rstrip(".")
    return f"{words}." if script.status is None else f"{words} (its own status: {script.status})."


def script_failure(session: Session) -> str | None:
    """Return how the script failed before enough steps were seen; None if it did not."""
    script = session.script
    if not cut_short(script) or (session.steps is not None and session.breakdown is not None):
        return None
    return f"The script ended before enough steps were seen: {ending(script)}"


def failed_by_itself(session: Session) -> str | None:
    """Return how a script failed that was not ended from outside; None if it did not."""
    return script_failure(session) if session.script.outcome in _ENDED_BY_ITSELF else None


_HELD: tuple[LoopKind, ...] = ("keras", "eager", "tf_function")
"""A loop on several replicas has no step for trials."""
_TRIED: tuple[FindingStatus, ...] = ("fail", "informative")


def edits_for_second_run(session: Session) -> list[Edit]:
    """Edits that a second run could try in the loop; none where that would show nothing new."""
    asked = session.trials_missing != NO_BUDGET and session.script.second_run is None
    trials = [finding.trial for finding in session.findings]
    tried = any(one.state != "not_tried" and one.consumer == "training" for one in trials)
    if not asked or not ended_well(session.script) or tried:
        return []
    return edits_for_held_loop(session)


def edits_for_held_loop(session: Session) -> list[Edit]:
    """Edits worth trying in the diagnosed loop, each once; none where no trial could be made."""
    loop = session.diagnosed_loop()
    if loop is None or loop.kind not in _HELD or loop.replicas != 1 or loop.from_python:
        return []
    if any(op.function is not None and op.function.side_effect for op in session.ops):
        return []
    edits: list[Edit] = []
    for finding in session.findings:
        edit, worth = finding.edit, finding.status in _TRIED
        if edit is None or not worth or finding.effect_on_results == "not safe here":
            continue
        if edit.loop_id is not None:
            continue
        if all(edit.changes != known.changes for known in edits):
            edits.append(edit)
    return edits


def ended_well(script: Script) -> bool:
    """Return True if it came to its end by itself, and says that all went well."""
    return script.outcome in ("finished", "exited") and script.status == 0
