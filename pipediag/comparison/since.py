"""What a second analysis shows against the one before it, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.comparison.comparing import compare
from pipediag.comparison.result import Comparison
from pipediag.comparison.wording import told, values
from pipediag.errors import PipediagError
from pipediag.session.model import Session

_SHOWN = ("step", "run")


def since(earlier: Session, now: Session) -> list[str]:
    """Step and run before and after, and the findings that are gone and new, a sentence each.

    None of it is a judgement: two single runs differ by chance, too, which `compare` weighs. Empty
    where the two are of other scripts, arguments or machines, or where one of them failed.
    """
    if (earlier.script.path, earlier.script.args) != (now.script.path, now.script.args):
        return []
    try:
        return list(_said(compare([earlier], [now])))
    except PipediagError:
        return []


def _said(comparison: Comparison) -> Iterator[str]:
    for quantity in comparison.quantities:
        if quantity.name in _SHOWN and values(quantity):
            change = quantity.difference
            # Of the two that are shown: what `compare` weighs is more than these.
            by = f", {change:+.1f} %" if change is not None else ""
            yield f"{quantity.label}: {values(quantity)}{by}"
    yield from (f"Gone: {told(one)}" for one in comparison.gone)
    yield from (f"New: {told(one)}" for one in comparison.new)
