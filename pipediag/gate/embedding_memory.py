"""A limit on the memory of embedding tables."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.gate.config import GateConfig
from pipediag.gate.result import Check, CheckOutcome
from pipediag.session.embeddings import Embedding
from pipediag.session.model import Session

_GIB = 2**30


def embedding_memory_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check where the configuration limits it: tables and optimizer slots, of the largest run.

    Sizes are read, not timed, so that they have no interval.
    """
    most = config.max_embedding_gib
    if most is None:
        return []
    tables = max((session.embeddings for session in runs), key=_bytes)
    size = _bytes(tables) / _GIB
    unknown = [table.layer for table in tables if table.slot_bytes is None]
    return [
        Check(
            name="max-embedding-gib",
            outcome=_outcome(size, most, unknown),
            severity="error",
            sentence=(
                f"Embedding tables with their optimizer's variables: {size:.2f} GiB"
                f"{_largest(tables)}, limit {most:g} GiB.{_unknown(unknown)}"
            ),
        )
    ]


def _bytes(tables: Sequence[Embedding]) -> int:
    return sum(table.table_bytes + (table.slot_bytes or 0) for table in tables)


def _outcome(size: float, most: float, unknown: Sequence[str]) -> CheckOutcome:
    if size > most:
        return "fail"
    return "inconclusive" if unknown else "pass"


def _largest(tables: Sequence[Embedding]) -> str:
    if not tables:
        return ""
    table = max(tables, key=lambda one: _bytes([one]))
    return f" (largest: {table.layer}, {_bytes([table]) / _GIB:.2f} GiB)"


def _unknown(layers: Sequence[str]) -> str:
    if not layers:
        return ""
    return f" What the optimizer keeps for {layers[0]} is not known, so it may be more."
