"""Times of a tf.data service of one worker on this machine, which made a loop's batches."""

from __future__ import annotations

from pipediag.session.record import Record


class InputService(Record):
    """Measured in the script's process, which took batches as fast as they came."""

    own_cpus: int
    """CPUs that its workers had for themselves, as hosts of their own would; 0 where they shared
    those of the training."""
    after: str
    """The operation whose elements were sent."""
    pipeline_ms: float
    """A batch of the pipeline as written, without a service."""
    served_ms: float
    """A batch by the worker. It takes longer than without a service where each share of the data is
    asked for, as each record of an array is, and where the training's host has CPUs to spare."""
    send_ms: float
    """A batch by the worker if it takes nothing to make: copies of one are compressed, sent and
    unpacked."""
    send_raw_ms: float
    """A batch that is sent so without compression."""
    cores_busy: float
    """CPUs that the worker kept busy while it served."""
    worker_memory_bytes: int
    """Its resident memory."""
