"""The input pipeline as it was written, with what its operations cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.session.record import Record
from pipediag.session.recording import RecordedOperation
from pipediag.vocabulary import Scalar


@dataclass(kw_only=True)
class IteratorFigures:
    """Cost of what runs; a step is one batch that is handed over. None: not known."""

    elements: float | None = None
    self_ms_per_step: float | None = None
    """Wall time in this operation alone, summed over its parallel calls, without a profiler: where
    the profile alone counts it, its share of profiled steps at the pace of the others."""
    bytes_per_element: float | None = None
    parallelism: int | None = None
    autotuned: bool | None = None
    buffered_elements: float | None = None
    buffer_size: int | None = None


@dataclass(kw_only=True)
class Operation(IteratorFigures, RecordedOperation):
    """One operation of the input pipeline: what was written, and what it cost."""

    code: str | None = None
    python_calls_per_step: float | None = None
    """Calls of its Python functions in a step of the baseline; None if not measured."""
    python_wall_ms_per_step: float | None = None
    """Wall time of these calls, summed over calls that run at once."""
    python_cpu_ms_per_step: float | None = None
    """CPU time that the threads which called them took meanwhile."""
    inserted_by_tensorflow: bool = False
    fused_from: list[str] = field(default_factory=list)
    fused_into: str | None = None
    """The operation that TensorFlow fused this one into; its cost is counted there."""
    latency_ms_per_step: float | None = None
    """Self time divided by the calls in flight: what the operation adds to a batch's delay."""


class Pipeline(Record):
    ops: list[Operation]
    """Operations in the order of the data: sources first."""
    bottleneck_op_id: str | None
    tied_op_ids: list[str] = []
    """Others that take about as long, so that another run may find one of them slowest."""
    options: dict[str, Scalar] = {}
    autotune_enabled: bool = True
    missing: str | None = None
