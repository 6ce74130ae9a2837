"""The storage of the files that a pipeline reads."""

from __future__ import annotations

from pipediag.facts.pipeline import operations, upstream, uses
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import INFINITE_CARDINALITY, OPENS_FILES, READERS


def reads_files(session: Session, op: Operation) -> bool:
    """Return True if the operation reads files, or the datasets of its function do."""
    inner = (one for one in operations(session) if one.inside_function_of == op.id)
    return any(one.kind in READERS or uses(one.function, OPENS_FILES) for one in (op, *inner))


def remote_storage(session: Session, op: Operation | None = None) -> str | None:
    """Return the remote storage of the files that the operation reads, or of any of the pipeline's.

    Names of files are known where they are listed, before the operation that reads them.
    """
    ops = session.ops
    if op is not None:
        outer = session.operation(op.inside_function_of)
        ends = [op, *([outer] if outer is not None else [])]
        ops = [one for end in ends for one in (end, *upstream(session, end))]
    found = (one.parameters.get("remote_storage") for one in ops)
    return next((str(storage) for storage in found if storage), None)


def ms_per_opened_file(op: Operation) -> float | None:
    """Return the time of a call that opens one file, with what else it does; None if unknown."""
    if not uses(op.function, OPENS_FILES) or not op.elements or op.self_ms_per_step is None:
        return None
    return op.self_ms_per_step / op.elements


def from_disk_percent(session: Session) -> float | None:
    """Return how much of what the process read came from storage, in percent of what it asked."""
    host = session.host
    if host is None or host.read_bytes_per_s is None or not host.asked_bytes_per_s:
        return None
    # The system reads ahead of what is asked for.
    return min(100.0, 100.0 * host.read_bytes_per_s / host.asked_bytes_per_s)


def bytes_of_an_epoch(session: Session) -> float | None:
    """Return the bytes that an epoch reads: by its files, or by its steps and those measured."""
    readers = [op for op in session.ops if op.kind in READERS]
    sizes = [
        op.parameters.get("file_bytes")
        for op in readers
        if op.parameters.get("compression_type") in (None, "")
    ]
    known = [float(size) for size in sizes if isinstance(size, int)]
    if readers and len(known) == len(readers):
        return sum(known)
    loop, steps, host = session.diagnosed_loop(), session.steps, session.host
    if loop is None or steps is None or host is None or host.asked_bytes_per_s is None:
        return None
    count: float | None = loop.keras.steps_per_epoch if loop.keras is not None else None
    last = session.ops[-1].cardinality if session.ops else None
    if count is None and last is not None and last not in (0, INFINITE_CARDINALITY):
        count = last
    if count is None and loop.epoch_ends:
        count = loop.steps / loop.epoch_ends
    return None if count is None else count * steps.mean_ms / 1e3 * host.asked_bytes_per_s
