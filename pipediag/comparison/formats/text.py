"""A comparison for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.comparison.result import Comparison, Quantity
from pipediag.comparison.wording import (
    all_values,
    difference,
    explained,
    interval,
    judged_first,
    level,
    overall,
    reason,
    rests_on,
    values,
)
from pipediag.encoding.terminal import lines

_OUTCOME_WIDTH = len("INCONCLUSIVE")
_INDENT = " " * (_OUTCOME_WIDTH + 4)


def render(comparison: Comparison) -> str:
    """Each quantity, what is judged first, then what explains it, and a closing line."""
    said = [f"{comparison.head_label} against {comparison.base_label}"]
    if comparison.script_failure is not None:
        said.append(f"  {comparison.script_failure}")
    for quantity in judged_first(comparison.quantities):
        said += _lines(quantity)
    said += [f"  {sentence}" for sentence in explained(comparison)]
    return lines([*said, "", overall(comparison)])


def _lines(quantity: Quantity) -> Iterator[str]:
    outcome = "" if quantity.outcome == "not judged" else quantity.outcome.upper()
    parts = ", ".join(filter(None, (values(quantity), difference(quantity))))
    yield f"  {outcome:{_OUTCOME_WIDTH}}  {quantity.label}{': ' if parts else ''}{parts}"
    shown = quantity.change is not None or quantity.outcome != "not judged"
    more = [all_values(quantity) if shown else "", reason(quantity)]
    if quantity.change is not None:
        yield (
            f"{_INDENT}{level(quantity.change)} interval {interval(quantity)}, from "
            f"{rests_on(quantity.change)}"
        )
    yield from (f"{_INDENT}{line}" for line in more if line)
