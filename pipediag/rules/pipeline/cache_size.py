"""What a cache of all elements takes, and whether there is room for it."""

from __future__ import annotations

from pipediag.facts.amounts import memory_size
from pipediag.facts.limits import Threshold
from pipediag.facts.machine import available_bytes
from pipediag.facts.pipeline import keeps_elements, measured_at, upstream
from pipediag.rules.pipeline.cached_elements import elements_of_a_pass
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES

MEMORY = Threshold(
    "size of the cache",
    50.0,
    "% of the available memory",
    "TensorFlow's own memory budget for tf.data is half of what is available; Plumber allows 90 %",
)
DISK = Threshold(
    "size of a cache on disk",
    50.0,
    "% of the free disk",
    "own choice: the script's own files need room too",
)


def against(
    session: Session, passes: float | None, size: float | None, count: int | None = None
) -> str | None:
    """Why a cache of that size, or of so many elements, can't be advised, or None."""
    if passes is None:
        return (
            "Whether the script reads its data more than once is not known; a cache pays only then."
        )
    if passes <= 1:
        return "The data is read once, so a cache would gain nothing."
    if size is None and count is not None:
        return (
            f"A cache could help. It would hold {count:,} elements, whose size was not measured: "
            "put `.cache()` behind this operation if all of them fit into memory."
        )
    if size is None:
        return (
            "A cache could help, but how large it would be is not known: count the elements first."
        )
    if not fits_in_memory(session, size) and not _fits_on_disk(session, size):
        return (
            f"A cache would take {memory_size(size)}, {room(session)}. Cache to a large and "
            "fast disk with `.cache(path)`, or store the results once."
        )
    return None


def fits_in_memory(session: Session, size: float) -> bool:
    """Whether so many bytes leave half of what is available to everything else."""
    return size <= available_bytes(session) * MEMORY.value / 100.0


def _fits_on_disk(session: Session, size: float) -> bool:
    free = session.environment.free_disk_bytes
    return free is not None and size <= free * DISK.value / 100.0


def room(session: Session) -> str:
    """How much there is of what a cache could lie in, as a part of a sentence."""
    free = session.environment.free_disk_bytes
    disk = "" if free is None else f"; {memory_size(free)} are free on disk"
    memory = memory_size(available_bytes(session))
    return f"more than half of the {memory} of memory that are available{disk}"


def cache_bytes(session: Session, op: Operation) -> float | None:
    """What all elements of one pass take at this operation."""
    each = bytes_each(session, op)
    if each is None:
        return None
    count = elements_of_a_pass(session, op)
    return _by_files(session, op, each) if count is None else float(count * each)


def _by_files(session: Session, op: Operation, each: float) -> float | None:
    """The bytes of the files that are read, as many times as an element grows on the way here.

    A reader can't say how many elements its files hold.
    """
    above = upstream(session, op)
    source = above[-1] if above else op
    held, read = source.parameters.get("file_bytes"), bytes_each(session, source)
    between_them = [other for other in [op, *above[:-1]] if other.kind not in CACHES]
    if not isinstance(held, int) or not read or not keeps_elements(between_them):
        return None
    return held * each / read


def bytes_each(session: Session, op: Operation) -> float | None:
    """What one element takes at this operation."""
    at = measured_at(session, op)
    # After fusion with a batch the measured bytes are those of batches.
    return op.element_bytes or (at.bytes_per_element if at is op else None)
