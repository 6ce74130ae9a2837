"""One embedding table in one step: what the step does with it, and by which ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.copies import beside, copies_of, of_all_devices
from pipediag.capture.frameworks.tensorflow.tables.ids import (
    NotFromABatchError,
    cast_of,
    compute,
    handed_out_there,
    part_of_batch,
    sources_of,
)
from pipediag.capture.frameworks.tensorflow.tables.lookups import Lookup
from pipediag.capture.frameworks.tensorflow.tables.masks import masks_zero
from pipediag.capture.frameworks.tensorflow.tables.parts import Place, TableParts
from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Unfolded
from pipediag.capture.frameworks.tensorflow.tables.work import (
    WholeTable,
    WholeTables,
    Writes,
    bytes_behind,
)
from pipediag.capture.runtime import LookedUp, Passage
from pipediag.session.recorded_tables import RecordedSoftmax, RecordedTableUse, RecordedVariable
from pipediag.tensorflow_names import LOOKUP
from pipediag.vocabulary import SparseOrDense, TablePart

Given = dict[tuple[int, str, int], Any]
"""Values of a step's tensors, by their keys."""


class TableInStep:
    """One table in the graph of one step."""

    def __init__(
        self,
        step: Unfolded,
        variable: Any,
        lookups: list[Lookup],
        writes: Writes,
        whole: WholeTables,
    ) -> None:
        self.variable = of_all_devices(variable)
        self._step = step
        self._lookups = lookups
        self._handle = variable.handle
        self._shape = shape = tuple(variable.shape.as_list())
        self.record = RecordedVariable(
            layer=variable.name.removesuffix(":0"),
            rows=shape[0],
            dim=math.prod(shape[1:]),
            dtype=variable.dtype.base_dtype.name,
            trainable=bool(variable.trainable),
            slots=0,
            mask_zero=masks_zero(step, lookups),
        )
        work = whole.of(variable.handle, shape)
        self.use = _use_of(variable, work, lookups, writes, step.handles())
        self.softmax: RecordedSoftmax | None = None
        self.passage: Passage | None = None
        self.ids_missing: str | None = None
        self.ids_incomplete: str | None = None
        self._copies: list[TableInStep] = []
        self._followed: list[Lookup] = []
        """Lookups whose ids a batch tells."""
        self._needed: set[tuple[int, str, int]] = set()
        self._follow(lookups)

    def _follow(self, lookups: list[Lookup]) -> None:
        """Find what tells the ids of each, as of one that draws them at random nothing does."""
        dtypes: list[str] = []
        lacks: list[str] = []
        for lookup in lookups:
            try:
                made_of = _sources(self._step, lookup, self._made_of)
                needed = {one.key for one in self._computed_from(lookup.ids)}
            except NotFromABatchError as lack:
                lacks.append(str(lack))
                continue
            self._followed.append(lookup)
            self._needed |= needed
            dtypes += [_dtype_of(one, lookup.ids) for one in made_of]
        if not dtypes:
            why = lacks[0] if lacks else "they do not come from the batch"
            self.ids_missing = f"The ids can't be computed from a batch: {why}."
            return
        self.passage = _passage(self._step, self._followed, dtypes[0])
        if lacks:
            self.ids_incomplete = (
                f"{len(lacks)} of {len(lookups)} lookups could not be followed, as their ids can't "
                f"be computed from a batch: {lacks[0]}."
            )

    def parts(self, whole: WholeTables) -> dict[Place, TablePart]:
        """Which operations of the step are which part of what it costs."""
        return TableParts(self._step, whole, self._handle, self._shape).by_place()

    def joins(self, copy: TableInStep) -> None:
        """Count the lookups of another replica with its own."""
        self._copies.append(copy)
        if copy.ids_missing is not None:
            self.passage, self.ids_missing = None, copy.ids_missing
        self.ids_incomplete = self.ids_incomplete or copy.ids_incomplete

    def answers(self, given: Given) -> bool:
        """Whether all that its ids are computed from is there, of all replicas."""
        return self._needed <= given.keys() and all(one.answers(given) for one in self._copies)

    def looked_up(self, given: Given) -> list[LookedUp]:
        """Computed as the step computes them, those of all replicas."""
        found = []
        # Where a loop is written out several times, each turn looks up a batch of its own.
        branch = self._followed[0].branch
        for lookup in (one for one in self._followed if one.branch is branch):
            cast = cast_of(self._step, lookup.ids)
            before = cast.before if cast else None
            found.append(
                LookedUp(
                    compute(self._step, lookup.ids, given).numpy(),
                    None if before is None else compute(self._step, before, given).numpy(),
                )
            )
        return found + [one for copy in self._copies for one in copy.looked_up(given)]

    def _computed_from(self, ids: At) -> Iterator[At]:
        """What has to be given for ids.

        Raises:
            NotFromABatchError: nothing that can be given tells them.
        """
        return sources_of(self._step, ids)

    def _made_of(self, ids: At) -> Iterator[At]:
        """What ids are in the batch.

        Raises:
            NotFromABatchError: they do not come from it.
        """
        return sources_of(self._step, ids)


def join_copies(tables: Sequence[TableInStep]) -> None:
    """Have the first of a strategy's copies tell of all of them."""
    firsts: dict[int, TableInStep] = {}
    for table in tables:
        first = firsts.setdefault(id(table.variable), table)
        if first is not table:
            first.joins(table)


def is_a_table(variable: Any, writes: Writes) -> bool:
    """Not so a slot of an optimizer or a metric's counts, which a step writes too."""
    if not variable.dtype.is_floating or not variable.shape.is_fully_defined():
        return False
    trained = variable.trainable or variable.handle not in writes
    return bool(trained and variable.shape.rank >= 1 and variable.shape[0] > 1)


def _use_of(
    variable: Any,
    work: WholeTable,
    lookups: list[Lookup],
    writes: Writes,
    handles: dict[int, Any],
) -> RecordedTableUse:
    own = id(variable.handle)
    slots = [
        handles[other]
        for other in work.variables
        if other != own
        and other in handles
        and handles[other] in writes
        and beside(variable, handles[other])
    ]
    changed = {own, *map(id, slots)}
    return RecordedTableUse(
        variable=variable.name,
        device=variable.device,
        lookups=len(lookups),
        copied_on_lookup=any(lookup.read is not None for lookup in lookups),
        copies=_copies(lookups) if own in writes.rows else 0,
        exchanged=_exchanged(variable, work) if variable.handle in writes else None,
        gradient=_gradient(work, own, writes) if variable.handle in writes else None,
        gradient_spread=work.spread,
        writes_rows=bool(changed & writes.rows),
        writes_whole=bool(changed & writes.whole),
        whole_table_operations=dict(sorted(work.operations.items())),
        temporary_bytes=work.temporary_bytes,
        temporary_peak_bytes=work.temporary_peak_bytes,
        slots=len(slots),
        slot_bytes=sum(map(bytes_behind, slots)),
    )


def _exchanged(variable: Any, work: WholeTable) -> SparseOrDense | None:
    if copies_of(variable) < 2:
        return None
    return "dense" if work.exchanged else "sparse"


def _copies(lookups: list[Lookup]) -> int:
    """Reads of the whole variable; XLA takes the rows of it alone."""
    return len({one.read.key for one in lookups if one.read is not None and not one.compiled})


def _gradient(work: WholeTable, own: int, writes: Writes) -> SparseOrDense:
    """Rows that are written, or spread over the table first, came as rows."""
    came_as_rows = work.spread or own in writes.rows
    return "sparse" if came_as_rows and not work.dense_gradient else "dense"


def _sources(step: Unfolded, lookup: Lookup, made_of: Callable[[At], Iterator[At]]) -> Sequence[At]:
    """What the ids of a lookup are in the batch.

    Raises:
        NotFromABatchError: they do not come from it, or from one of another turn of a loop.
    """
    branch = lookup.branch
    if branch is not None and not handed_out_there(step, lookup):
        raise NotFromABatchError(f"they are looked up within `{branch.within}` of the graph")
    return list(made_of(lookup.ids))


def _passage(step: Unfolded, lookups: list[Lookup], dtype: str) -> Passage:
    """How the ids come; of several ways any float on one of them."""
    vocabularies = [found for one in lookups for found in _vocabularies(step, one.ids)]
    casts = [cast.through for one in lookups if (cast := cast_of(step, one.ids)) is not None]
    parts = [part_of_batch(step, one.ids) for one in lookups]
    return Passage(
        dtype,
        casts[0] if casts else None,
        tuple(vocabularies),
        tuple(part for part in parts if part is not None) if None not in parts else (),
    )


def _dtype_of(source: At, ids: At) -> str:
    """Of ids in the batch; of a ragged or a sparse one, which comes as a whole, when taken out."""
    dtype = source.tensor.dtype
    return str(ids.tensor.dtype.name if dtype.name == "variant" else dtype.name)


def _vocabularies(step: Unfolded, ids: At) -> list[Any]:
    """Handles of the tables of tokens on the way of the ids."""
    found, seen, waiting = [], set(), [step.source(ids)]
    while waiting:
        at = waiting.pop()
        if at.key in seen:
            continue
        seen.add(at.key)
        if at.op.type in LOOKUP:
            handle = step.captured(At(at.frame, at.op.inputs[0]))
            if handle is not None:
                found.append(handle)
        waiting.extend(step.source(one) for one in at.inputs())
    return found
