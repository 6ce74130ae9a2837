"""Shuffle buffers that would take too long to fill at the start of every block."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.edits import Change, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

LONGEST_FILL_S = 0.25
"""Own choice: about the length of a block's warm-up."""

_FEWEST_BATCHES = 2


@dataclass(frozen=True)
class SharedChanges:
    """Changes that base and edits have in common, and the sentences that own up to them."""

    changes: tuple[Change, ...] = ()
    caveats: tuple[str, ...] = ()


def shorter_shuffles(session: Session) -> SharedChanges:
    """Smaller buffers for shuffles that take longer than `LONGEST_FILL_S` to fill.

    A full buffer passes elements on at the same cost whatever its size; only the time and the
    memory to fill it grow.
    """
    changes = [
        change
        for op in (session.pipeline.ops if session.pipeline else [])
        if op.kind == "shuffle" and (change := _shortened(session, op)) is not None
    ]
    if not changes:
        return SharedChanges()
    return SharedChanges(
        tuple(changes),
        ("Shuffle buffers were made smaller in all arms, as each block fills them anew.",),
    )


def _shortened(session: Session, op: Operation) -> SetParameters | None:
    size = op.parameters.get("buffer_size")
    if not isinstance(size, int) or session.steps is None or not op.elements:
        return None
    elements_per_s = op.elements / session.steps.mean_ms * 1000
    wanted = round(max(elements_per_s * LONGEST_FILL_S, op.elements * _FEWEST_BATCHES, 1))
    return SetParameters(op.id, {"buffer_size": wanted}) if wanted < size else None
