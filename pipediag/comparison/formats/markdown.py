"""A comparison for a job summary or a comment."""

from __future__ import annotations

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
from pipediag.encoding import markdown

LONGEST = 60_000
"""Characters; a comment on GitHub holds 65,536."""

_HEADER = [
    "| Outcome | What | Medians | Change | Interval | All runs | Why |",
    "|---|---|---|--:|---|---|---|",
]


def render(comparison: Comparison) -> str:
    """A table of the quantities, a list of what explains them, and a closing line."""
    title = f"{comparison.head_label} against {comparison.base_label}"
    text = ["## pipediag", "", markdown.heading(3, title, comparison.outcome), ""]
    if comparison.script_failure is not None:
        text += [markdown.text(comparison.script_failure), ""]
    if comparison.quantities:
        text += [*_HEADER, *map(_row, judged_first(comparison.quantities)), ""]
    text += [*_fitting([f"- {markdown.text(said)}" for said in explained(comparison)]), ""]
    return "\n".join([*text, overall(comparison), ""])


def _row(quantity: Quantity) -> str:
    change = quantity.change
    cells = (
        quantity.outcome,
        quantity.label,
        values(quantity),
        difference(quantity),
        "" if change is None else f"{interval(quantity)} ({level(change)}, {rests_on(change)})",
        all_values(quantity),
        reason(quantity),
    )
    return markdown.row(cells)


def _fitting(items: list[str]) -> list[str]:
    """As many as there is room for beside the table, which is short."""
    room = LONGEST // 2
    shown: list[str] = []
    for item in items:
        room -= len(item)
        if room < 0:
            return [*shown, f"- {len(items) - len(shown)} more had no room here."]
        shown.append(item)
    return shown
