"""A session and a configuration in, a result out."""

from __future__ import annotations

from pipediag.facts.ending import cut_short, ending
from pipediag.gate.config import GateConfig
from pipediag.gate.findings import finding_checks
from pipediag.gate.result import Check, GateResult
from pipediag.gate.run_limits import run_limit_checks
from pipediag.gate.step_limits import step_limit_checks
from pipediag.gate.verdicts import verdict_check
from pipediag.session.model import Session


def evaluate(session: Session, config: GateConfig, label: str | None = None) -> GateResult:
    """Put every limit and rule to the session; `label` names it, else the script as typed does.

    The verdict is asked only where no limit is configured: a configured limit takes its place.
    A session whose script failed before enough steps were seen is not judged at all.
    """
    failure = script_failure(session)
    checks: list[Check] = []
    if failure is None:
        checks += step_limit_checks(session, config) + run_limit_checks(session, config)
        if not config.has_limits:
            checks.append(verdict_check(session, config.fail_on))
        checks += finding_checks(session, config)
    return GateResult(
        label=label or session.script.path,
        checks=tuple(checks),
        fail_on=config.fail_on,
        allow_inconclusive=config.allow_inconclusive,
        script_failure=failure,
    )


def script_failure(session: Session) -> str | None:
    """How the script failed before enough steps were seen, in a sentence; None if it did not."""
    script = session.script
    if not cut_short(script) or (session.steps is not None and session.breakdown is not None):
        return None
    return f"The script ended before enough steps were seen: {ending(script)}"
