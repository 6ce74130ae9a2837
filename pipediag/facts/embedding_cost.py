"""What parts of a step the profile found tables to take."""

from __future__ import annotations

from collections.abc import Iterable

from pipediag.session.embeddings import Embedding
from pipediag.session.model import Session
from pipediag.vocabulary import StepPart, TablePart


def parts_ms(
    session: Session, tables: Iterable[Embedding], parts: Iterable[TablePart]
) -> float | None:
    """Milliseconds of a step in these parts of these tables; None where one's were not told."""
    if session.embedding_cost is None:
        return None
    wanted, found = set(parts), 0.0
    for table in tables:
        own = [
            one
            for one in session.embedding_cost.parts
            if (one.layer, one.variable) == (table.layer, table.variable)
        ]
        if not own:
            return None
        found += sum(one.ms for one in own if one.part in wanted)
    return found


def part_ms(session: Session, part: StepPart) -> float | None:
    """Milliseconds of a step in what is no table's; None where the profile does not tell."""
    if session.embedding_cost is None:
        return None
    return sum(one.ms for one in session.embedding_cost.parts if one.part == part)


def percent_of_step(session: Session, ms: float | None) -> float | None:
    """Of the mean step; None where that or the time is not known."""
    if ms is None or session.steps is None or not session.steps.mean_ms:
        return None
    return 100.0 * ms / session.steps.mean_ms
