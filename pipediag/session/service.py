"""Times of a tf.data service on this machine, which made and sent the batches of a loop."""

from __future__ import annotations

from pipediag.session.record import Record


class InputService(Record):
    """Measured in the script's process, which took batches as fast as they came."""

    workers: int
    """Processes that made them."""
    own_cpus: int
    """CPUs that these had for themselves, as hosts of their own would; 0 where they shared those of
    the training."""
    after: str
    """The operation whose elements were sent."""
    pipeline_ms: float
    """A batch of the pipeline as written, without a service."""
    served_ms: float
    """A batch by the service."""
    send_ms: float
    """A batch by the service if it takes nothing to make: copies of one are compressed, sent and
    unpacked."""
    send_raw_ms: float
    """A batch that is sent so without compression."""
    cores_busy: float
    """CPUs that the workers kept busy while they served, all together."""
    worker_memory_bytes: int
    """Resident memory of the largest worker."""
