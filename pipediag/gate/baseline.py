"""A comparison with a baseline, as checks of the gate and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median

from pipediag.comparison.quantities import (
    GrownOperation,
    Quantity,
    Sides,
    function_name,
    grown,
    only_in,
    quantities,
    refuse_other_machines,
    refuse_several_scripts,
    run_in_the_middle,
)
from pipediag.comparison.statistics import Change, Outcome
from pipediag.facts.script import script_failure
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import figures
from pipediag.gate.result import UNIT_WORDS, Check, CheckOutcome, GateResult, location, number
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

_OUTCOMES: dict[Outcome, CheckOutcome] = {
    "regressed": "fail",
    "improved": "pass",
    "same": "pass",
    "inconclusive": "inconclusive",
}
_number = partial(number, unit="ms")
_BASIS = {"runs": "runs", "blocks": "stretches of steps"}


def compare_with_baseline(
    base: Sequence[Session],
    head: Sequence[Session],
    config: GateConfig,
    labels: tuple[str, str],
) -> GateResult:
    """Return one check for each quantity that is judged; a slow-down that counts fails the gate.

    What is not judged, and what explains the rest, are notes.

    Raises PipediagError: the sessions are of different machines, or a side is of several scripts.
    """
    for side in (base, head):
        refuse_several_scripts(side)
    result = GateResult(
        label=f"{labels[1]} against {labels[0]}",
        script=head[0].script.path,
        checks=(),
        fail_on=config.fail_on,
        allow_inconclusive=config.allow_inconclusive,
        compared=True,
        figures=figures(run_in_the_middle(head)),
    )
    failure = next(filter(None, map(script_failure, (*base, *head))), None)
    if failure is not None:
        return replace(result, script_failure=failure)
    refuse_other_machines(base, head)
    sides = Sides(tuple(base), tuple(head), config.max_slowdown_percent)
    found, most = quantities(sides), grown(sides)
    judged = [one for one in found if one.outcome != "not judged"]
    explaining = [one for one in found if one.outcome == "not judged"]
    return replace(
        result,
        checks=tuple(_check(one, most) for one in judged),
        notes=(*map(_explaining, explaining), *_notes(sides, most)),
    )


def _check(quantity: Quantity, most: GrownOperation | None) -> Check:
    change = quantity.change
    sentence = f"{quantity.label}: {_reason(quantity)}"
    if change is not None:
        sentence = (
            f"{quantity.label}: {_medians(quantity)}, {_difference(quantity)} ({change.level:.4g} "
            f"% interval {change.low:+.1f} to {change.high:+.1f} %, from "
            f"{_samples(quantity, change)}). {_reason(quantity)}"
        )
    place = most.op if most is not None and quantity.outcome == "regressed" else None
    return Check(
        name=f"baseline.{quantity.name}",
        outcome=_OUTCOMES[quantity.outcome],
        severity="error",
        sentence=sentence,
        value=None if change is None else change.value,
        interval=None if change is None else (change.low, change.high),
        limit=quantity.floor,
        file=None if place is None else place.file,
        line=None if place is None else place.line,
    )


def _explaining(quantity: Quantity) -> str:
    if not quantity.base or not quantity.head:
        return f"{quantity.label}: {quantity.missing}"
    said = f"{quantity.label}: {_medians(quantity)}, {_difference(quantity)}."
    return f"{said} {quantity.missing}" if quantity.missing else said


def _notes(sides: Sides, most: GrownOperation | None) -> Iterator[str]:
    if most is not None:
        yield _grown(most)
    base, head = run_in_the_middle(sides.base), run_in_the_middle(sides.head)
    before, after = base.verdict.bottleneck, head.verdict.bottleneck
    if before != after:
        yield f"The bottleneck was {before} and is now {after}."
    yield from (f"New finding: {_finding(one)}" for one in only_in(head, base))
    yield from (f"Gone finding: {_finding(one)}" for one in only_in(base, head))
    if not sides.repeated:
        yield (
            "There are fewer than three runs of each, so the spread from run to run is not known, "
            "and only a large change counts. With a script, `pipediag compare` makes five of each."
        )
    scripts = [{session.script.path for session in side} for side in (sides.base, sides.head)]
    if scripts[0] != scripts[1]:
        yield "The scripts of base and head have different names."


def _medians(quantity: Quantity) -> str:
    before, after = median(quantity.base), median(quantity.head)
    return f"{_number(before)} to {_number(after)}{UNIT_WORDS[quantity.unit]}"


def _difference(quantity: Quantity) -> str:
    """Return the change of the medians that are shown beside it: of a share in points."""
    before, after = median(quantity.base), median(quantity.head)
    if quantity.unit == "percent":
        return f"{after - before:+.1f} points"
    return f"{100.0 * (after / before - 1.0):+.1f} %" if before > 0 else "from none"


def _samples(quantity: Quantity, change: Change) -> str:
    said = f"{change.samples[0]} and {change.samples[1]} {_BASIS[change.basis]}"
    if change.basis == "blocks":
        # The mean steps are shown, and medians of stretches are compared.
        said += f", whose medians differ by {change.value:+.1f} %"
    if max(len(quantity.base), len(quantity.head)) > 1:
        base, head = (", ".join(map(_number, side)) for side in (quantity.base, quantity.head))
        said += f": base {base}; head {head}"
    return said


def _reason(quantity: Quantity) -> str:
    if quantity.missing is not None or quantity.change is None or quantity.floor is None:
        return quantity.missing or ""
    floor = f"{quantity.floor:g} %"
    match quantity.outcome:
        case "regressed" | "improved":
            return f"More than chance, and at least the {floor} that counts."
        case "same":
            return f"Less than the {floor} that counts."
        case _ if quantity.change.drifting:
            return (
                "The machine seems to change steadily from run to run, which may be the only "
                "cause. Alternate both: `pipediag compare BASE_DIR HEAD_DIR -- train.py`."
            )
        case _:
            return (
                "It may be chance, or another load beside some of the runs. Measure more runs, or "
                "on a quieter machine."
            )


def _grown(most: GrownOperation) -> str:
    before = "nothing" if most.base_ms is None else _number(most.base_ms)
    function = function_name(most.op)
    of = f" of {function}" if function else ""
    return (
        f"Grew most in the input pipeline: `{most.op.kind}`{of}{_at(most.op)}, "
        f"from {before} to {_number(most.head_ms)} ms per step."
    )


def _finding(finding: Finding) -> str:
    return f"{finding.rule}{_at(finding)}: {finding.title.rstrip('.')}."


def _at(place: Operation | Finding) -> str:
    return f" at {location(place.file, place.line)}" if place.file else ""
