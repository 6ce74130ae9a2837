"""What the child process reads of tf.data's own model of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ModelNode:
    """A node of tf.data's model proto. Times are nanoseconds of wall time."""

    id: int
    name: str
    inputs: list[int]
    num_elements: int
    processing_time_ns: int
    bytes_produced: int
    bytes_consumed: int
    buffered_elements: int
    buffered_bytes: int
    autotune: bool
    parallelism: int | None = None
    parallelism_tunable: bool | None = None
    buffer_size: int | None = None
    buffer_size_tunable: bool | None = None


@dataclass
class ModelSnapshot:
    """tf.data's model of the training iterator at one moment; two of them give rates."""

    loop_id: str
    iterator: int
    """Ordinal of the iterator in its loop: counters restart with each."""
    at_ns: int
    steps: int
    """Steps of the loop so far."""
    iterator_steps: int
    """Batches that this iterator has handed over so far."""
    nodes: list[ModelNode]
    output_id: int
