"""What parts of a step the profile found tables to take."""

from __future__ import annotations

from collections.abc import Iterable, Set

from pipediag.session.embedding_cost import NO_PROGRAM, EmbeddingCost
from pipediag.session.embeddings import Embedding
from pipediag.session.model import Session
from pipediag.vocabulary import StepPart, TablePart

_NOTICED_PERCENT = 1.0
"""Of the compute: what XLA fused with other parts, or computed in a program that was not kept,
hides a part from there on. Own choice: less changes no figure that is shown."""


def parts_ms(
    session: Session, tables: Iterable[Embedding], parts: Iterable[TablePart]
) -> float | None:
    """Milliseconds of a step in these parts of these tables; None where one's were not told."""
    if session.embedding_cost is None:
        return None
    wanted, found = set(parts), 0.0
    for table in tables:
        names = {(part, table.layer, table.variable) for part in wanted}
        own = [
            one
            for one in session.embedding_cost.parts
            if (one.layer, one.variable) == (table.layer, table.variable)
        ]
        if not own or hidden(session.embedding_cost, names):
            return None
        found += sum(one.ms for one in own if one.part in wanted)
    return found


def part_ms(session: Session, part: StepPart) -> float | None:
    """Milliseconds of a step in what is no table's; None where the profile does not tell."""
    cost = session.embedding_cost
    if cost is None or hidden(cost, {(part, None, None)}):
        return None
    return sum(one.ms for one in cost.parts if one.part == part)


def hidden(cost: EmbeddingCost, wanted: Set[tuple[StepPart, str | None, str | None]]) -> bool:
    """Whether XLA fused any of these parts, given with layer and variable, with others, or may have
    computed them where the profile does not tell."""
    fused = (
        one.percent
        for one in cost.fused
        if any((part.part, part.layer, part.variable) in wanted for part in one.parts)
    )
    return max(sum(fused), _unkept_percent(cost)) >= _NOTICED_PERCENT


def _unkept_percent(cost: EmbeddingCost) -> float:
    """Of the compute: at most what ran in programs that the profile does not keep, which may hold
    any part."""
    if NO_PROGRAM not in cost.notes:
        return 0.0
    not_told = sum(one.percent for one in cost.parts if one.part == "not_told")
    return not_told - sum(one.percent for one in cost.fused)


def percent_of_step(session: Session, ms: float | None) -> float | None:
    """Of the mean step; None where that or the time is not known."""
    if ms is None or session.steps is None or not session.steps.mean_ms:
        return None
    return 100.0 * ms / session.steps.mean_ms
