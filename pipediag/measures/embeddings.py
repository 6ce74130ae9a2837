"""Embedding tables: their memory, their ids, and the time of a step in work on all of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from pipediag.session.loops import Embedding
from pipediag.session.recorded_loops import (
    RecordedLoop,
    RecordedVariable,
    TableFacts,
    TableUse,
)
from pipediag.session.recording import Recording
from pipediag.trace.operations import ComputeTimes
from pipediag.vocabulary import SparseOrDense

_READS = {"Cast"}
"""Operations of a lookup on the whole table, which are no part of its update."""
_NOT_READ = "The step was not analysed: its loop ended first or was not measured."
_NOT_WRITTEN = "The step does not write it."


def describe_embeddings(
    variables: list[RecordedVariable],
    loop: RecordedLoop | None = None,
    compute: StepCompute | None = None,
) -> list[Embedding]:
    """Return one row for each table, the largest first; `compute` is that of the loop's step."""
    rows = [
        _describe(one, compute if loop is not None and one.loop_id in (None, loop.id) else None)
        for one in variables
    ]
    return sorted(rows, key=lambda row: -row.table_bytes)


def _describe(variable: RecordedVariable, compute: StepCompute | None) -> Embedding:
    use, ids = variable.use, variable.ids
    bits = re.search(r"\d+", variable.dtype)  # `float32`, `bfloat16`, `float8_e5m2`
    table = variable.rows * variable.dim * (int(bits[0]) // 8 if bits else 4)
    unseen = None if ids else variable.ids_missing or _NOT_READ
    described = Embedding(
        **{**_of(TableFacts, variable), "ids_missing": unseen},
        table_bytes=table,
        slot_bytes=None,
        gradient=None,
        update=None,
        rows_touched_per_step=None if not ids or ids.incomplete else round(ids.unique_per_step),
    )
    if use is None:
        return replace(described, missing=variable.use_missing or _NOT_READ)
    # Dense, too, where rows alone are written, but are computed from a pass over the table.
    dense = use.writes_whole or bool(use.whole_table_operations.keys() - _READS)
    update: SparseOrDense = "dense" if dense else "sparse"
    return replace(
        described,
        **{**_of(TableUse, use), "variable": variable.variable},
        update=None if use.gradient is None else update,
        missing=_NOT_WRITTEN if use.gradient is None else None,
        copied_bytes_per_step=table * use.copies,
        passes_ms=compute.ms_of(use.pass_operations) if compute else None,
        copy_ms=compute.ms_of(use.copy_operations) if compute else None,
    )


def _of(kind: type[Any], record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(kind)}


_NOTICED = 0.01
"""The part of the compute from which on what can't be assigned hides the rest. Own choice."""
_IN_A_BODY = re.compile(r"/(body|cond|then|else|branch\d*)/_\d+(?=/)")
"""The part of operation names in a loop or a branch that TensorFlow adds."""


@dataclass(frozen=True)
class StepCompute:
    """The compute of a step, by operation."""

    times: ComputeTimes
    compute_ms: float

    def ms_of(self, operations: Collection[str]) -> float | None:
        """Return the milliseconds of a step in these operations.

        None where the profile has none of them, or XLA computed them together with others, or in
        programs that were not kept.
        """
        times, wanted = self.times, set(operations)

        def among_them(name: str) -> bool:  # given as `scope/name:Type`
            return _IN_A_BODY.sub("", name.rpartition(":")[0]) in wanted

        own = sum(ns for name, ns in times.by_operation.items() if among_them(name))
        unclear = times.compiled_ns + times.unnamed_ns if times.compiled_ns else 0.0
        for work, ns in times.by_instruction.items():
            # What is fused belongs to what its results are of.
            if all(map(among_them, work.ends_in)):
                own += ns
            elif any(map(among_them, work.holds)):
                unclear += ns
        if not own or unclear >= _NOTICED * times.total_ns:
            return None
        return self.compute_ms * own / times.total_ns


def names_operations(recording: Recording, loop: RecordedLoop) -> bool:
    """Return True if a finding needs the time of some operations of the loop's step."""
    return bool(loop.vocabulary_operations or loop.metric_operations) or any(
        one.use is not None and (one.use.pass_operations or one.use.copy_operations)
        for one in recording.variables
        if one.loop_id in (None, loop.id)
    )
