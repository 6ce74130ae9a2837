"""What every form of a comparison says in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from pipediag.comparison.result import (
    OUTCOMES,
    Change,
    Comparison,
    GrownOperation,
    Quantity,
    ToldFinding,
    Unit,
)
from pipediag.facts.names import in_checkout

_UNITS: dict[Unit, str] = {"us": "us", "ms": "ms", "s": "s", "percent": "%"}


def values(quantity: Quantity) -> str:
    """`10.0 to 12.4 ms`: the medians."""
    if not quantity.base or not quantity.head:
        return ""
    before, after = median(quantity.base), median(quantity.head)
    return f"{number(before)} to {number(after)} {_UNITS[quantity.unit]}"


def all_values(quantity: Quantity) -> str:
    """The value of each run, where there are several."""
    if max(len(quantity.base), len(quantity.head)) < 2:
        return ""
    sides = (", ".join(map(number, side)) for side in (quantity.base, quantity.head))
    return "base {}; head {}".format(*sides)


def difference(quantity: Quantity) -> str:
    """`+24.0 %`, or points of a share: between the values that stand beside it."""
    change = quantity.difference
    return "" if change is None else f"{change:+.1f} {_difference_unit(quantity)}"


def interval(quantity: Quantity) -> str:
    """`+18.1 to +30.2 %`; empty where nothing was judged."""
    change = quantity.change
    if change is None:
        return ""
    return f"{change.low:+.1f} to {change.high:+.1f} {_difference_unit(quantity)}"


def level(change: Change) -> str:
    """`99.33 %`: of the interval."""
    return f"{change.level:.4g} %"


def rests_on(change: Change) -> str:
    """What was sampled, and by how much it differs where that is not what is shown."""
    what = {"runs": "runs", "blocks": "stretches of steps", "steps": "steps"}[change.basis]
    said = f"{change.samples[0]} and {change.samples[1]} {what}"
    if change.basis == "blocks":
        return f"{said}, whose medians differ by {change.value:+.1f} %"
    return said


def reason(quantity: Quantity) -> str:
    """Why the outcome is what it is, as a sentence; empty where there is nothing to add."""
    if quantity.missing is not None or quantity.change is None or quantity.floor is None:
        return quantity.missing or ""
    floor = f"{quantity.floor:g} {_difference_unit(quantity)}"
    match quantity.outcome:
        case "regressed" | "improved":
            return f"More than chance, and at least the {floor} that count."
        case "same" if quantity.change.basis == "runs":
            return f"Less than the {floor} that count."
        case "same" if quantity.change.low > 0.0:
            return (
                f"Less than the {floor} that count between single runs, and more than chance "
                "within them: three runs of each tell."
            )
        case "same":
            return f"Less than the {floor} that count between single runs."
        case _:
            return _undecided(quantity.change, quantity.floor, floor)


def _undecided(change: Change, floor: float, shown: str) -> str:
    if change.value >= floor and change.low > 0.0 and not change.all_along:
        return (
            f"It reaches the {shown} that count, but is not seen in the fastest steps of each run: "
            "another load may have slowed parts of them. Measure more runs."
        )
    if change.value >= floor and change.low > 0.0:
        fastest = "runs" if change.basis == "runs" else "stretches"
        return (
            f"It reaches the {shown} that count, but the fastest {fastest} of both differ by far "
            "less: another load may have slowed some of them. Measure more runs."
        )
    if change.drifting:
        return (
            "The machine seems to change steadily from run to run, which may be all there is. "
            "Run both in turn: `pipediag compare BASE_DIR HEAD_DIR -- train.py`."
        )
    if change.value >= floor:
        return f"It reaches the {shown} that count, and may be chance. Measure more runs."
    return "The noise would hide a large change. Measure more runs, or on a quieter machine."


def grown(operation: GrownOperation) -> str:
    """Which operation grew, as a sentence."""
    unit = "% of the step" if operation.shares else "ms per step"
    before = "nothing" if operation.base_ms is None else number(operation.base_ms)
    return (
        f"Grew most in the input pipeline: {operation.name}{_at(operation.file, operation.line)}, "
        f"from {before} to {number(operation.head_ms)} {unit}."
    )


def told(finding: ToldFinding) -> str:
    """A finding with its place."""
    return f"{finding.rule}{_at(finding.file, finding.line)}: {finding.title.rstrip('.')}."


def explained(comparison: Comparison) -> Iterator[str]:
    """What is behind the numbers, a sentence each."""
    if comparison.grown is not None:
        yield grown(comparison.grown)
    before, after = comparison.bottlenecks
    if before != after:
        yield f"The bottleneck was {before} and is {after}."
    yield from (f"New finding: {told(one)}" for one in comparison.new)
    yield from (f"Gone finding: {told(one)}" for one in comparison.gone)
    yield from comparison.notes


def overall(comparison: Comparison) -> str:
    """The closing sentence."""
    status = comparison.status.value
    if comparison.script_failure is not None:
        return f"Comparison: not made (exit status {status})."
    return f"Comparison: {comparison.outcome} (exit status {status})."


def judged_first(quantities: Iterable[Quantity]) -> list[Quantity]:
    """What decides goes first, and what only explains last."""
    return sorted(quantities, key=lambda one: OUTCOMES.index(one.outcome))


def number(value: float) -> str:
    """Three digits or more, no exponent where a person reads it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _difference_unit(quantity: Quantity) -> str:
    return "points" if quantity.unit == "percent" else "%"


def _at(file: str | None, line: int | None) -> str:
    if file is None:
        return ""
    shown = in_checkout(file)
    return f" at {shown}" if line is None else f" at {shown}:{line}"
