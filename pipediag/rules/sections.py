"""Which sections of a session a rule needs, and what to say where one is missing."""

from __future__ import annotations

from collections.abc import Callable

from pipediag.facts.devices import NO_DEVICE
from pipediag.rules.rule import Meta, Section
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import FindingStatus

_BREAKDOWN_SAYS_IT = (
    "Without an accelerator the step's breakdown says what the device's idle time would."
)

Lack = tuple[FindingStatus, str]


def lacking(meta: Meta, session: Session) -> Finding | None:
    """A not-applicable or inconclusive finding for the first section that is missing, or None."""
    for section in meta.needs:
        lack = _lack_of(section, session)
        if lack is not None:
            status, reason = lack
            return meta.finding(status, reason)
    return None


def _lack_of(section: Section, session: Session) -> Lack | None:
    if section in _LACKS:
        return _LACKS[section](session)
    if getattr(session, section) is not None:
        return None
    reason = getattr(session, f"{section}_missing")
    return "inconclusive", reason or f"The session has no `{section}`, and no reason for it."


def _loop(session: Session) -> Lack | None:
    if session.diagnosed_loop() is not None:
        return None
    return "not-applicable", "No training loop was seen."


def _keras(session: Session) -> Lack | None:
    loop = session.diagnosed_loop()
    if loop is None:
        return _loop(session)
    if loop.keras is not None:
        return None
    return "not-applicable", "The training loop is not a Keras fit."


def _run(session: Session) -> Lack | None:
    if session.run is not None:
        return None
    if session.run_missing:
        return "inconclusive", session.run_missing
    return "not-applicable", "The session has no ledger of the run."


def _pipeline(session: Session) -> Lack | None:
    loop = session.diagnosed_loop()
    if loop is not None and loop.from_python and not (session.pipeline and session.pipeline.ops):
        return "not-applicable", "Python hands each step its batch: there is no tf.data pipeline."
    if session.pipeline is None:
        return "inconclusive", session.pipeline_missing or "The input pipeline was not recorded."
    if session.pipeline.ops:
        return None
    if session.pipeline.missing:
        return "inconclusive", session.pipeline.missing
    return "not-applicable", "The training loop reads no tf.data pipeline."


def _devices(session: Session) -> Lack | None:
    if any(device.kind.lower() != "cpu" for device in session.devices):
        return None
    if session.devices:
        return "not-applicable", _BREAKDOWN_SAYS_IT
    return _loop(session) or ("inconclusive", session.breakdown_missing or NO_DEVICE)


_LACKS: dict[Section, Callable[[Session], Lack | None]] = {
    "loop": _loop,
    "keras": _keras,
    "run": _run,
    "pipeline": _pipeline,
    "devices": _devices,
}
"""What is no section with a reason beside it, or may be there and empty."""
