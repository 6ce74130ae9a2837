"""The storage of the files that a pipeline reads."""

from __future__ import annotations

from pipediag.facts.pipeline import operations, upstream, uses
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import OPENS_FILES, READERS


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


def bytes_of_an_epoch(session: Session) -> int | None:
    """Return the bytes of the files that an epoch reads; None where they are not known."""
    sizes = [op.parameters.get("file_bytes") for op in session.ops if op.kind in READERS]
    known = [size for size in sizes if isinstance(size, int)]
    return sum(known) if sizes and len(known) == len(sizes) else None
