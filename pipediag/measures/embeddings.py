"""Embedding tables: their memory, their ids, and what they cost in a step."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np

from pipediag.measures.breakdown import round_to_hundred
from pipediag.measures.recorded_windows import Missing
from pipediag.session.embeddings import (
    NO_PROGRAM,
    CostPart,
    Embedding,
    EmbeddingCost,
    FusedParts,
    PartName,
)
from pipediag.session.loops import Share
from pipediag.session.recorded_loops import (
    RecordedLoop,
    RecordedVariable,
    TableFacts,
    TableUse,
)
from pipediag.session.recording import Recording
from pipediag.trace.events import CompiledWork
from pipediag.trace.operations import ComputeTimes
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import SparseOrDense, StepClass

_OTHER_TYPES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
"""Types that NumPy alone does not know."""

_FLOAT32 = 4
_READS = {"Cast"}
"""Operations of a lookup on the whole table, which are no part of its update."""
_NOT_READ = "The step was not analysed: its loop ended first or was not measured."
_NOT_WRITTEN = "The step does not write it."


def describe_embeddings(variables: list[RecordedVariable]) -> list[Embedding]:
    """Return one row for each table, the largest first."""
    rows = [_describe(variable) for variable in variables]
    return sorted(rows, key=lambda row: -row.table_bytes)


def _describe(variable: RecordedVariable) -> Embedding:
    use, ids = variable.use, variable.ids
    table = variable.rows * variable.dim * item_bytes(variable.dtype)
    unseen = None if ids else variable.ids_missing or _NOT_READ
    described = Embedding(
        **{**_of(TableFacts, variable), "ids_missing": unseen},
        table_bytes=table,
        slot_bytes=table * (variable.slots or 0),
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
        slots=use.slots,
        update=None if use.gradient is None else update,
        missing=_NOT_WRITTEN if use.gradient is None else None,
        copied_bytes_per_step=table * use.copies,
    )


def _of(kind: type[Any], record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(kind)}


def item_bytes(dtype: str) -> int:
    """Bytes of one number of a TensorFlow type, 4 for a type that is not known."""
    if dtype in _OTHER_TYPES:
        return _OTHER_TYPES[dtype]
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        return _FLOAT32


NO_TABLE = "The steps look up no embedding table."
_GRAPH_NOT_READ = (
    "The graph of the step was not read, so its operations can't be assigned to parts."
)
_NO_COMPUTE = "The profile shows no compute in its steps."
_BY_RESULT = (
    "XLA fuses operations: fused operations count toward the part that their result belongs to."
)

_IN_A_BODY = re.compile(r"/(body|cond|then|else|branch\d*)/_\d+(?=/)")
"""The part of operation names in a loop or a branch that TensorFlow adds."""
_REST, _NOT_TOLD = PartName(part="rest"), PartName(part="not_told")


def has_parts(recording: Recording, loop: RecordedLoop) -> bool:
    """Return True if it is known which operations of the loop's step belong to tables."""
    return bool(loop.vocabulary_operations or loop.metric_operations) or any(
        table.use is not None and table.use.operations for table in _tables(recording, loop)
    )


def measure_embedding_cost(
    recording: Recording,
    loop: RecordedLoop,
    trace: TraceSummary | None,
    trace_missing: str | None,
    breakdown: dict[StepClass, Share] | Missing,
) -> EmbeddingCost | Missing:
    """Return the step's compute by part, or why that is not known."""
    tables = _tables(recording, loop)
    if not recording.variables:
        return Missing(loop.tables_missing or NO_TABLE)
    if not has_parts(recording, loop):
        return Missing(_GRAPH_NOT_READ)
    if trace is None or trace.steps is None or trace.compute is None:
        reason = trace_missing or (trace.missing.get("steps") if trace else None)
        return Missing(reason or _NO_COMPUTE)
    if isinstance(breakdown, Missing):
        return breakdown
    if not trace.compute.total_ns:
        return Missing(_NO_COMPUTE)
    compute_ms = breakdown["device_compute"].ms
    return _divided(_Names(tables, loop), trace.compute, len(trace.steps.ns), compute_ms)


def _tables(recording: Recording, loop: RecordedLoop) -> list[RecordedVariable]:
    return [one for one in recording.variables if one.loop_id in (None, loop.id)]


def _divided(names: _Names, times: ComputeTimes, steps: int, compute_ms: float) -> EmbeddingCost:
    ns: dict[PartName, float] = {_REST: 0.0, _NOT_TOLD: times.compiled_ns + times.unnamed_ns}
    fused_ns: dict[frozenset[PartName], float] = {}
    for operation, took in times.by_operation.items():
        part = names.part_of(operation)
        ns[part] = ns.get(part, 0.0) + took
    for work, took in times.by_instruction.items():
        found = names.parts_of(work)
        part = next(iter(found)) if len(found) == 1 else _NOT_TOLD
        ns[part] = ns.get(part, 0.0) + took
        if len(found) > 1:
            fused_ns[found] = fused_ns.get(found, 0.0) + took
    percents = round_to_hundred(np.array(list(ns.values())))
    rows = [
        CostPart(**vars(part), ms=compute_ms * percent / 100.0, percent=percent)
        for part, percent in zip(ns, percents, strict=True)
        if percent
    ]
    fused = []
    for parts, took in sorted(fused_ns.items(), key=lambda one: -one[1]):
        known = sorted(parts, key=lambda one: (one == _REST, one.part, one.layer or ""))
        share = took / times.total_ns
        fused.append(
            FusedParts(
                parts=known,
                ms=compute_ms * share,
                percent=100.0 * share,
            )
        )
    return EmbeddingCost(
        compute_ms=compute_ms,
        steps=steps,
        overlap=times.summed_ns / times.total_ns,
        parts=sorted(rows, key=lambda row: (-row.percent, row.layer is None)),
        fused=fused,
        notes=[
            *([_BY_RESULT] if times.by_instruction else []),
            *([NO_PROGRAM] if times.compiled_ns else []),
        ],
    )


class _Names:
    """The parts of the step that the operations of a profile belong to."""

    def __init__(self, tables: list[RecordedVariable], loop: RecordedLoop) -> None:
        self._parts: dict[str, PartName] = dict.fromkeys(
            loop.vocabulary_operations, PartName(part="vocabulary")
        )
        self._parts.update(dict.fromkeys(loop.metric_operations, PartName(part="metrics")))
        for one in loop.softmaxes:
            own = PartName(part="update", layer=one.weights, variable=one.weights)
            self._parts.update(dict.fromkeys(one.update_operations, own))
        for table in tables:
            for part, names in table.use.operations.items() if table.use else ():
                label = PartName(part=part, layer=table.layer, variable=table.variable)
                self._parts.update(dict.fromkeys(names, label))

    def part_of(self, operation: str) -> PartName:
        """The part of an operation, given as `scope/name:Type`."""
        name = _IN_A_BODY.sub("", operation.rpartition(":")[0])
        return self._parts.get(name, _REST)

    def parts_of(self, work: CompiledWork) -> frozenset[PartName]:
        """Return the part that the result of what XLA compiled is of; several where not known, as
        where what ends in the rest of the model may be a lookup above all."""
        result = frozenset(map(self.part_of, work.ends_in))
        all_parts = frozenset(map(self.part_of, work.holds))
        return all_parts if len(result) > 1 or result == {_REST} else result
