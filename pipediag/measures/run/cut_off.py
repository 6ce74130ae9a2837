"""Runs that were ended from outside: whether their last training was under way."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.places import Spent
from pipediag.session.ledger import EXITING
from pipediag.session.timeline import Timeline
from pipediag.vocabulary import ScriptOutcome

_FROM_OUTSIDE: frozenset[ScriptOutcome] = frozenset({"interrupted", "timed-out"})
_ASKED_TO_END = frozenset({-signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT})

_LEAVING_NS = 1_000_000_000
"""Own choice: what an exception takes from a step to the end of the script, with a callback or two
that it passes. A script that does something behind its training does it for longer."""

_LONGER = 2
"""Own choice: no end of an epoch takes so many times what the longest took that was seen."""


def from_outside(outcome: ScriptOutcome, status: int | None) -> bool:
    """Whether the user or `--timeout` ended it, so that it would have gone on by itself.

    A script that raised, or that the system killed, would not: what it took is all that it takes.
    """
    return outcome in _FROM_OUTSIDE or (outcome == "killed" and status in _ASKED_TO_END)


def in_its_training(timeline: Timeline, spent: Sequence[Spent], epochs: Epochs) -> bool:
    """Whether the training that ran last was not over when the run was.

    A `fit` that returned before was, however few of its epochs it made. A loop of the script's own
    was where what followed it took longer than anything between its epochs.
    """
    fit = next((one.fit for one in reversed(spent) if one.place.part == "steps"), None)
    if fit is not None:
        return _is_open(timeline, fit)
    ends_ns = [sum(times) for times in zip(*epochs.ends_ns.values(), strict=True)]
    after_ns = sum(
        one.ns for one in spent if one.place.part == "after_training" and one.place.what != EXITING
    )
    return not ends_ns or after_ns <= _LONGER * max(ends_ns) + _LEAVING_NS


def _is_open(timeline: Timeline, fit: int) -> bool:
    """Whether nothing ended that call but what ended the script."""
    ends_ns = {span.id: span.end_ns for span in timeline.spans}
    script = next((span for span in timeline.spans if span.kind == "script"), None)
    ended_ns, script_ns = ends_ns.get(fit), script.end_ns if script is not None else None
    if ended_ns is None:
        return True
    return script_ns is not None and script_ns - ended_ns <= _LEAVING_NS
