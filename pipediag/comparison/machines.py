"""Whether two sessions may be held against one another at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.errors import PipediagError
from pipediag.session.model import Session
from pipediag.session.run import Environment

_LONGEST = 80


def refuse_other_machines(base: Sequence[Session], head: Sequence[Session]) -> None:
    """Times carry over to no other machine.

    Raises:
        PipediagError: the fingerprints of the sessions differ; says in what.
    """
    sessions = [*base, *head]
    if len({session.environment.fingerprint for session in sessions}) == 1:
        return
    first = sessions[0].environment
    other = next(
        session.environment
        for session in sessions
        if session.environment.fingerprint != first.fingerprint
    )
    raise PipediagError(
        f"The sessions are of different machines ({_difference(first, other)}), so their times "
        "cannot be compared. Measure both on one machine, or compare shares of the step alone "
        "with --ratios-only."
    )


def _difference(one: Environment, other: Environment) -> str:
    """What the fingerprint is made of and differs."""
    facts = {
        "CPU": (one.cpu_model, other.cpu_model),
        "CPUs": (one.cores, other.cores),
        "CPU quota": (one.cpu_quota, other.cpu_quota),
        "devices": (_names(one), _names(other)),
    }
    told = [
        f"{name}: {_shown(before)} and {_shown(after)}"
        for name, (before, after) in facts.items()
        if before != after
    ]
    return "; ".join(told) or "their fingerprints differ"


def _names(environment: Environment) -> str:
    return ", ".join(sorted(device.name for device in environment.devices))


def _shown(value: Any) -> str:
    text = "none" if value is None or value == "" else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
