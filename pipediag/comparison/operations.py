"""Which operation of the input pipeline grew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from pipediag.comparison import values
from pipediag.comparison.quantities import Sides
from pipediag.comparison.result import GrownOperation
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

Key = tuple[str, str, int]
"""What it is, its function, and which of those in the order of the data: a line that is added above
it does not make it another."""

LEAST_PERCENT = 5.0
"""Of the base's step: an operation that grew by less is not named. Own choice: the smallest change
of the step that counts."""


def grown(sides: Sides) -> GrownOperation | None:
    """The one whose own time grew most; None where none grew by what counts.

    With shares alone it is the one whose share of the step grew most.
    """
    base = _costs(sides.base, shares=sides.ratios_only)
    head = _costs(sides.head, shares=sides.ratios_only)
    growth = {key: cost - base.get(key, 0.0) for key, cost in head.items()}
    found = max(growth, key=lambda key: growth[key], default=None)
    if found is None or not base or growth[found] < _least(sides):
        return None
    op = next(ops[found] for session in sides.head if found in (ops := _operations(session)))
    return GrownOperation(
        name=_name(op),
        file=op.file,
        line=op.line,
        base_ms=base.get(found),
        head_ms=head[found],
        shares=sides.ratios_only,
    )


def _least(sides: Sides) -> float:
    if sides.ratios_only:
        return LEAST_PERCENT
    steps = [one for one in map(values.step_ms, sides.base) if not isinstance(one, str)]
    return LEAST_PERCENT / 100.0 * median(steps) if steps else float("inf")


def _costs(sessions: Sequence[Session], *, shares: bool) -> dict[Key, float]:
    """Own time of each per step, ms, or percent of the step: the median of the sessions."""
    found: dict[Key, list[float]] = {}
    for session in sessions:
        step_ms = values.step_ms(session)
        if isinstance(step_ms, str):
            continue
        for key, op in _operations(session).items():
            if op.self_ms_per_step is not None:
                scale = 100.0 / step_ms if shares else 1.0
                found.setdefault(key, []).append(scale * op.self_ms_per_step)
    return {key: median(costs) for key, costs in found.items()}


def _name(op: Operation) -> str:
    """The operation and its function; its place is said beside."""
    named = op.function is not None and not op.function.name.startswith("<")
    return f"`{op.kind}` of {op.function.name}" if op.function and named else f"`{op.kind}`"


def _operations(session: Session) -> dict[Key, Operation]:
    seen: Counter[tuple[str, str]] = Counter()
    found: dict[Key, Operation] = {}
    for op in session.pipeline.ops if session.pipeline is not None else []:
        function = op.function.name if op.function is not None else ""
        what = (op.kind, "" if function.startswith("<") else function)
        found[(*what, seen[what])] = op
        seen[what] += 1
    return found
