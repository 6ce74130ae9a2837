"""The input pipeline as it was written, with what its operations cost."""

from __future__ import annotations

from pipediag.session.record import Record
from pipediag.vocabulary import Scalar


class OperationFunction(Record):
    name: str
    file: str | None
    line: int | None
    stateful: bool
    graph_ops: dict[str, int]
    python_calls: list[str] = []
    python_function_names: list[str] = []
    side_effect: str | None = None
    """What Python that it calls back visibly changes outside of itself; the end of a sentence."""
    trace_count: int | None = None
    constant_bytes: int | None = None
    """Size of the constants in its graph: arrays that it reads are written into it."""


class Operation(Record):
    """One operation of the input pipeline: what was written, and what it cost."""

    id: str
    kind: str
    name: str | None
    file: str | None
    line: int | None
    code: str | None = None
    """The source line, where it could be read."""
    parent_ids: list[str]
    """The operations that this one reads from."""
    elements: float | None
    """Elements per step."""
    self_ms_per_step: float | None
    """Wall time in this operation alone, summed over its parallel calls, without a profiler: where
    the profile alone counts it, its share of profiled steps at the pace of the others."""
    python_calls_per_step: float | None = None
    """Calls of the Python functions of this operation that began in a step of the baseline; None
    where it has none, or they were not measured."""
    python_wall_ms_per_step: float | None = None
    """Wall time of these calls, summed over calls that run at once."""
    python_cpu_ms_per_step: float | None = None
    """CPU time that the threads which called them took meanwhile."""
    python_off_cpu_percent: float | None = None
    """Part of the wall time in which the calling thread was not on a CPU: it waited, for whatever
    it may be, the GIL included."""
    bytes_per_element: float | None
    parallelism: int | None
    autotuned: bool | None
    buffered_elements: float | None
    buffer_size: int | None
    inserted_by_tensorflow: bool
    fused_from: list[str] = []
    """Ids of the operations that TensorFlow fused into this one."""
    fused_into: str | None = None
    """The operation that TensorFlow fused this one into; its cost is counted there."""
    removed_by_tensorflow: bool = False
    parameters: dict[str, Scalar] = {}
    function: OperationFunction | None = None
    cardinality: int | None = None
    element_bytes: int | None = None
    made_by_framework: bool = False
    helper: str | None = None
    """The library's function that made it for the line that calls that, for a dataset:
    `make_csv_dataset`, `image_dataset_from_directory`, ..."""
    inside_function_of: str | None = None
    iterator_name: str | None = None
    """TensorFlow's name for the iterator that ran: `MapAndBatch`, `ParallelMapV2`, ..."""
    replicas: int = 1
    """How many replicas have one each; its figures are of all of them."""
    latency_ms_per_step: float | None = None
    """Self time divided by the calls in flight: what the operation adds to a batch's delay."""


class Pipeline(Record):
    ops: list[Operation]
    """In the order of the data: sources first."""
    bottleneck_op_id: str | None
    tied_op_ids: list[str] = []
    """Other operations that take about as long, so that another run may find one of them slowest:
    together they limit the pipeline."""
    options: dict[str, Scalar] = {}
    autotune_enabled: bool = True
    missing: str | None = None
