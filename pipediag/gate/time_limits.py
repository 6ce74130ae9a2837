"""Limits on times, for one machine only: they mean nothing on another."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.gate.config import GateConfig
from pipediag.gate.limits import Limit, Measured, judged, of_runs
from pipediag.gate.result import Check
from pipediag.session.model import Session

_NARROWER = "More steps (--steps) and more runs make the interval narrower."


def time_limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check where the configuration limits the step on the machine of a fingerprint."""
    limits = config.on_machine
    if limits is None:
        return []
    limit = Limit("on-machine.max-step-ms", "Step", limits.max_step_ms, "ms")
    found = [_step(session, limits.fingerprint) for session in runs]
    place = (runs[0].verdict.file, runs[0].verdict.line)
    return [judged(limit, of_runs(found), place, narrower=_NARROWER)]


def _step(session: Session, fingerprint: str) -> Measured | str:
    """The median, whose interval the session has."""
    if session.environment.fingerprint != fingerprint:
        return (
            f"the session is of the machine {session.environment.fingerprint}, and the limit is "
            f"for {fingerprint}."
        )
    if session.steps is None:
        return session.steps_missing or "no step was measured."
    return Measured(session.steps.median_ms, session.steps.ci95_ms)
