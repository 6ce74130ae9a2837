"""What layers of a model prepare, kept behind the data that they prepare it of."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.graph_ops import calls_python, differs_by_pass
from pipediag.facts.pipeline import passes_over_data, place_name, upstream
from pipediag.rules.pipeline.cache_size import against, bytes_each, fits_in_memory
from pipediag.rules.pipeline.cached_elements import elements_of_a_pass, elements_to_cache
from pipediag.session.edits import MoveLayers
from pipediag.session.loops import InputLayer
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES

_HANDS_ON = ("prefetch", "with_options", "ignore_errors")
_MIXES = ("shuffle", "repeat")


@dataclass(frozen=True)
class KeptInputs:
    """Where prepared inputs can be kept for later passes."""

    after: Operation
    """What gives the data as it is in every pass."""
    rows: int | None
    """Examples of a batch that are prepared at once, where `after` gives single ones."""
    elements: int
    """Of the cache of a trial."""
    bytes: float
    """Of all that is prepared in one pass."""

    def change(self, layers: list[InputLayer]) -> MoveLayers:
        """The layers there, and a cache behind them."""
        names = tuple(layer.name for layer in layers)
        return MoveLayers(names, self.after.id, self.rows, self.elements)

    def place(self) -> str:
        """Where that is, as a part of an edit's label."""
        return f"a map with a cache behind the {place_name(self.after)}"

    def code(self, mapped: str) -> str:
        """What to write there around a call of `map`."""
        if self.rows is None:
            return f"{mapped}.cache()"
        return f"batch({self.rows}).{mapped}.unbatch().cache()"


def kept_inputs(
    session: Session, layers: list[InputLayer], last: Operation | None
) -> KeptInputs | None:
    """Where what these layers give would fit in memory and serve more than one pass, or None.

    Args:
        layers: those that can be moved.
        last: the last operation before the steps, but for a prefetch.
    """
    found = _place(session, last)
    size = session.steps.batch_size if session.steps is not None else None
    each = [layer.row_bytes for layer in layers if layer.handed_on]
    if found is None or size is None or not each or None in each:
        return None
    after, rows = found
    count, held = elements_of_a_pass(session, after), elements_to_cache(session, after)
    if count is None or held is None:
        return None
    prepared = sum(one for one in each if one is not None) * (1 if rows is not None else size)
    total = float(count * (prepared + (bytes_each(session, after) or 0.0)))
    passes = passes_over_data(session)
    if against(session, passes, total, count) is not None or not fits_in_memory(session, total):
        return None
    return KeptInputs(after, rows, held, total)


def _place(session: Session, last: Operation | None) -> tuple[Operation, int | None] | None:
    """The last operation that gives the same in every pass, and how many examples make a batch."""
    at = _above(session, last, (*_HANDS_ON, *_MIXES))
    if at is None:
        return None
    rows: int | None = None
    if at.kind == "batch" and any(op.kind in _MIXES for op in upstream(session, at)):
        size = at.parameters.get("batch_size")
        rows = size if isinstance(size, int) else None
        source = _only_parent(session, at)
        at = _above(session, source, (*_HANDS_ON, *_MIXES)) if rows is not None else None
    if at is None:
        return None
    whole = [at, *upstream(session, at)]
    return None if any(map(_may_differ, whole)) else (at, rows)


def _may_differ(op: Operation) -> bool:
    """Whether a cache behind it could hold other elements than a later pass would have."""
    mixed = op.kind in (*_MIXES, *CACHES, "from_generator")
    return mixed or differs_by_pass(op) or calls_python(op)


def _above(session: Session, op: Operation | None, kinds: tuple[str, ...]) -> Operation | None:
    """The operation itself, or the next one above it that is of none of these kinds."""
    while op is not None and op.kind in kinds:
        op = _only_parent(session, op)
    return op


def _only_parent(session: Session, op: Operation) -> Operation | None:
    return session.operation(op.parent_ids[0]) if len(op.parent_ids) == 1 else None
