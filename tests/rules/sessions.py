"""Sessions around one pipeline: what the tests of rules start from.

The step is 10 ms, of which 7 ms are input wait, as in the factories.
"""

from __future__ import annotations

from typing import Any

from pipediag.rules.registry import RULES
from pipediag.rules.rule import Meta, Rule
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_session
from tests.records import make_breakdown, make_operation, make_pipeline


def chain(*ops: Operation) -> list[Operation]:
    """The operations, each reading from the one before it; ids are kept."""
    linked = [ops[0]]
    for op in ops[1:]:
        linked.append(op.model_copy(update={"parent_ids": [linked[-1].id]}))
    return linked


def source(**overrides: Any) -> Operation:
    return make_operation(
        "source",
        "from_tensor_slices",
        line=1,
        **{"cardinality": 10_000, "elements": 32.0, **overrides},
    )


def batch(size: int = 32, **overrides: Any) -> Operation:
    return make_operation("batch", "batch", line=9, parameters={"batch_size": size}, **overrides)


def session_of(
    *ops: Operation, pipeline: dict[str, Any] | None = None, **overrides: Any
) -> Session:
    """An input-bound session whose pipeline is this chain."""
    values = {"ops": chain(*ops), "bottleneck_op_id": None, **(pipeline or {})}
    return make_session(**{"pipeline": make_pipeline(**values), "differential": None, **overrides})


def keeps_up() -> dict[str, Any]:
    """Overrides for a run whose input wait is 1 % of the step."""
    return {"breakdown": make_breakdown(input_wait=1.0, device_compute=90.0)}


def straddles() -> dict[str, Any]:
    """Overrides for a run whose input wait is 5 to 7 %, with 4.5 % in its interval."""
    breakdown = make_breakdown(input_wait=6.0, device_compute=90.0)
    share = breakdown["input_wait"].model_copy(update={"ci95_percent": (4.5, 7.5)})
    return {"breakdown": {**breakdown, "input_wait": share}}


def rule_of(meta: Meta) -> Rule:
    """The rule that is described so."""
    return next(rule for rule in RULES if rule.meta is meta)


def run(meta: Meta, session: Session) -> list[Finding]:
    """Return what the registry would get from this rule."""
    return rule_of(meta).findings(session)


def only(meta: Meta, session: Session) -> Finding:
    """The rule's finding, where there must be exactly one."""
    (finding,) = run(meta, session)
    assert finding.rule == meta.id
    return finding


def saved_s(finding: Finding) -> float | None:
    """Seconds that its advice takes off the run at most."""
    gain = finding.for_run
    return None if gain is None else gain.before_s - gain.after_s
