"""A comparison with a baseline as the gate's checks."""

from __future__ import annotations

from dataclasses import replace

from pipediag.comparison import Comparison
from pipediag.comparison import wording as words
from pipediag.comparison.result import Outcome, Quantity
from pipediag.gate.config import GateConfig
from pipediag.gate.result import Check, CheckOutcome, GateResult

_OUTCOMES: dict[Outcome, CheckOutcome] = {
    "regressed": "fail",
    "improved": "pass",
    "same": "pass",
    "inconclusive": "inconclusive",
}


def against_baseline(comparison: Comparison, config: GateConfig, script: str) -> GateResult:
    """One check for each quantity that is judged; a slow-down that counts fails the gate.

    The first that fails names the operation that grew; what else is behind it stands in the notes.
    """
    slower = (one for one in comparison.quantities if one.outcome == "regressed")
    first = next(slower, None)
    return GateResult(
        label=f"{comparison.head_label} against {comparison.base_label}",
        script=script,
        checks=tuple(
            _check(quantity, comparison, explained=quantity is first)
            for quantity in comparison.quantities
            if quantity.outcome != "not judged"
        ),
        fail_on=config.fail_on,
        allow_inconclusive=config.allow_inconclusive,
        script_failure=comparison.script_failure,
        notes=tuple(words.explained(replace(comparison, grown=None))),
        compared=True,
    )


def _check(quantity: Quantity, comparison: Comparison, *, explained: bool) -> Check:
    change, grown = quantity.change, comparison.grown
    regressed = quantity.outcome == "regressed"
    place = (grown.file, grown.line) if regressed and grown is not None else (None, None)
    return Check(
        name=f"baseline.{quantity.name}",
        outcome=_OUTCOMES[quantity.outcome],
        severity="error",
        sentence=_sentence(quantity, comparison if explained else None),
        value=None if change is None else change.value,
        interval=None if change is None else (change.low, change.high),
        limit=quantity.floor,
        file=place[0],
        line=place[1],
    )


def _each(quantity: Quantity) -> str:
    """The value of each run, where there are several."""
    found = words.all_values(quantity)
    return f": {found}" if found else ""


def _sentence(quantity: Quantity, explained: Comparison | None) -> str:
    change = quantity.change
    said = [f"{quantity.label}: {words.reason(quantity)}"]
    if change is not None:
        said = [
            f"{quantity.label}: {words.values(quantity)}, {words.difference(quantity)} "
            f"({words.level(change)} interval {words.interval(quantity)}, from "
            f"{words.rests_on(change)}{_each(quantity)}).",
            words.reason(quantity),
        ]
    if explained is not None and explained.grown is not None:
        said.append(words.grown(explained.grown))
    return " ".join(filter(None, said))
