"""Sessions of two versions, for tests: only what a comparison asks for differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.comparison.quantities import Quantity, Sides, quantities
from pipediag.comparison.statistics import Outcome
from pipediag.errors import ExitStatus
from pipediag.gate.baseline import compare_with_baseline
from pipediag.gate.config import GateConfig
from pipediag.session.model import Session
from tests.factories import make_part, make_run, make_session
from tests.records import make_breakdown, make_steps


def run_of(
    step_ms: float = 10.0, *, spread: float = 0.02, input_wait: float = 20.0, **overrides: Any
) -> Session:
    """A run whose steps take so long, by turns a little more and less."""
    samples = [step_ms * (1.0 + spread * (-1) ** at) for at in range(40)]
    values: dict[str, Any] = {
        "steps": make_steps(mean_ms=step_ms, median_ms=step_ms, samples_ms=samples),
        "breakdown": make_breakdown(
            step_ms, input_wait=input_wait, device_compute=60.0, dispatch=5.0
        ),
        "findings": [],
        "run": make_run(
            projected_total_s=None,
            total_s=2.0 * step_ms,
            parts=[
                make_part("startup", 1.0, whole_s=2.0 * step_ms),
                make_part("steps", 2.0 * step_ms - 1.0, whole_s=2.0 * step_ms, line=20),
            ],
        ),
    }
    return make_session(**{**values, **overrides})


def runs_of(*steps_ms: float, **overrides: Any) -> list[Session]:
    return [run_of(step_ms, **overrides) for step_ms in steps_ms]


def status_of(base: Sequence[Session], head: Sequence[Session]) -> ExitStatus:
    return compare_with_baseline(base, head, GateConfig(), ("base", "head")).status


def compare(base: Sequence[Session], head: Sequence[Session]) -> dict[str, Quantity]:
    return {one.name: one for one in quantities(Sides(tuple(base), tuple(head)))}


def outcome_of(found: dict[str, Quantity]) -> Outcome:
    """Return the outcome that decides."""
    order: tuple[Outcome, ...] = ("regressed", "inconclusive", "improved", "same")
    outcomes = {one.outcome for one in found.values()}
    return next(one for one in order if one in outcomes)
