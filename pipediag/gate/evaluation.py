"""Sessions and a configuration in, a result out."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.ending import script_failure
from pipediag.gate.config import GateConfig
from pipediag.gate.confirmed_speedup import confirmed_speedup_checks
from pipediag.gate.findings import finding_checks
from pipediag.gate.idle_limit import idle_limit_checks
from pipediag.gate.majority import majority
from pipediag.gate.result import Check, GateResult
from pipediag.gate.run_limits import run_limit_checks
from pipediag.gate.step_limits import step_limit_checks
from pipediag.gate.time_limits import time_limit_checks
from pipediag.gate.verdicts import verdict_checks
from pipediag.session.model import Session

_LIMITS = (
    step_limit_checks,
    idle_limit_checks,
    run_limit_checks,
    confirmed_speedup_checks,
    time_limit_checks,
)


def evaluate(session: Session, config: GateConfig, label: str | None = None) -> GateResult:
    """Put every limit and rule to the session; `label` names it, else the script as typed does."""
    return evaluate_runs([session], config, label)


def evaluate_runs(
    runs: Sequence[Session], config: GateConfig, label: str | None = None
) -> GateResult:
    """Put every limit and rule to several runs of one script, which are judged as one.

    A value is the median of the runs, and their spread is in its interval. Of verdict and rules the
    outcome is that of most runs. A configured limit takes the place of a verdict about the same
    share. Runs one of which failed before enough steps were seen are not
    judged at all.
    """
    failure = _failure(runs)
    checks: list[Check] = []
    if failure is None:
        checks += _limit_checks(runs, config)
        checks += verdict_checks(runs, config)
        checks += majority([finding_checks(run, config) for run in runs])
    return _result(runs[0], config, checks, failure, label)


def evaluate_named(session: Session, config: GateConfig) -> GateResult:
    """Put to the session what the configuration names: neither the verdict nor any other rule."""
    failure = _failure([session])
    checks: list[Check] = []
    if failure is None:
        checks += _limit_checks([session], config)
        checks += [one for one in finding_checks(session, config) if one.name in config.rules]
    return _result(session, config, checks, failure)


def _limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    return [check for limits in _LIMITS for check in limits(runs, config)]


def _result(
    session: Session,
    config: GateConfig,
    checks: Sequence[Check],
    failure: str | None,
    label: str | None = None,
) -> GateResult:
    return GateResult(
        label=label or session.script.path,
        script=session.script.path,
        checks=tuple(checks),
        fail_on=config.fail_on,
        allow_inconclusive=config.allow_inconclusive,
        script_failure=failure,
    )


def _failure(runs: Sequence[Session]) -> str | None:
    failures = [failure for failure in map(script_failure, runs) if failure is not None]
    if not failures or len(runs) == 1:
        return next(iter(failures), None)
    return f"{len(failures)} of {len(runs)} runs failed. {failures[0]}"
