"""Explanations of a change from base to head: operations that grew, findings that came and went."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pipediag.comparison.quantities import Measured, Sides, step_ms
from pipediag.encoding import clipped
from pipediag.errors import PipediagError
from pipediag.session.findings import Finding
from pipediag.session.model import Environment, Session
from pipediag.session.pipeline import Operation

Key = tuple[str, str, int]
"""Kind and function of an operation, and its number among those in the order of the data. Lines are
no part of it, so that a line that is added above does not make it another operation."""

LEAST_PERCENT = 5.0
"""Percent of base's step by which an operation must have grown to be named. Own choice: the
smallest change of the step that counts."""


@dataclass(frozen=True)
class GrownOperation:
    """The operation of the input pipeline whose own time grew most."""

    op: Operation
    base_ms: float | None
    """Per step, summed over parallel calls; None if only head has it."""
    head_ms: float


def grown(sides: Sides) -> GrownOperation | None:
    """Return the operation whose own time grew most; None if none grew enough."""
    base, head = _costs(sides.base), _costs(sides.head)
    growth = {key: cost - base.get(key, 0.0) for key, cost in head.items()}
    found = max(growth, key=lambda key: growth[key], default=None)
    steps = [one.value for one in map(step_ms, sides.base) if isinstance(one, Measured)]
    least = LEAST_PERCENT / 100.0 * median(steps or [math.inf])
    if found is None or not base or growth[found] < least:
        return None
    op = next(ops[found] for session in sides.head if found in (ops := _operations(session)))
    return GrownOperation(op, base.get(found), head[found])


def _costs(sessions: Sequence[Session]) -> dict[Key, float]:
    """Return the own time of each operation in ms per step: medians of runs."""
    found: dict[Key, list[float]] = {}
    for session in sessions:
        for key, op in _operations(session).items():
            if op.self_ms_per_step is not None:
                found.setdefault(key, []).append(op.self_ms_per_step)
    return {key: median(costs) for key, costs in found.items()}


def _operations(session: Session) -> dict[Key, Operation]:
    seen: Counter[tuple[str, str]] = Counter()
    found: dict[Key, Operation] = {}
    for op in session.pipeline.ops if session.pipeline is not None else []:
        what = op.kind, function_name(op)
        found[(*what, seen[what])] = op
        seen[what] += 1
    return found


def function_name(op: Operation) -> str:
    """Return the name of its function; empty for a lambda, or where it has none."""
    name = op.function.name if op.function is not None else ""
    return "" if name.startswith("<") else name


_LONGEST = 80


def refuse_other_machines(base: Sequence[Session], head: Sequence[Session]) -> None:
    """Refuse to compare times of different machines.

    Raises PipediagError: the fingerprints of the sessions differ; names the machines.
    """
    machines = {one.environment.fingerprint: one.environment for one in (*base, *head)}
    if len(machines) > 1:
        both = "; ".join(map(_named, list(machines.values())[:2]))
        raise PipediagError(
            f"The sessions are from different machines ({both}), so their times can't be compared. "
            "Measure both on one machine, or check shares of the step and of the run against "
            "limits of [tool.pipediag]."
        )


def _named(machine: Environment) -> str:
    allowed = f", {machine.cpu_quota:g} allowed" if machine.cpu_quota is not None else ""
    devices = ", ".join(sorted(device.name for device in machine.devices)) or "no devices"
    processor = clipped(machine.cpu_model or "unknown processor", _LONGEST)
    return f"{processor}: {machine.cores} CPUs{allowed}, {clipped(devices, _LONGEST)}"


def only_in(session: Session, other: Session) -> tuple[Finding, ...]:
    """Return findings of rules that fail more often here than there.

    Those at places that the other session does not have come first.
    """
    here, there = _failed(session), _failed(other)
    more = Counter(one.rule for one in here) - Counter(one.rule for one in there)
    known = {(one.rule, one.file, one.line) for one in there}
    found = []
    for one in sorted(here, key=lambda one: (one.rule, one.file, one.line) in known):
        if more[one.rule] > 0:
            more[one.rule] -= 1
            found.append(one)
    return tuple(found)


def _failed(session: Session) -> list[Finding]:
    return [one for one in session.findings if one.status == "fail" and not one.dropped]
