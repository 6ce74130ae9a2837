"""Storage of the files: a disk whose files memory will hold later, or a network."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.facts.machine import available_bytes
from pipediag.facts.names import memory_size
from pipediag.facts.pipeline import operations, upstream, uses
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import pipeline_rule
from pipediag.session.findings import Finding
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


FROM_DISK = Threshold("read from disk", 10.0, "% of what the process reads", "own choice")
_LEAST_PER_S = 1e6
"""Bytes. Own choice: less from a disk is what programs write and look up beside their data."""

COLD_FILES = pipeline_rule(
    id="cold-files",
    title="Know that the measured steps read from disk",
    why="Linux keeps files that were read in free memory. Steps that read them from disk wait "
    "longer than those of later epochs, or of a second run.",
    fix="Compare runs of the same state only: read the files once before (`cat FILES > /dev/null`) "
    "or measure a later epoch. Where they don't fit into memory, a faster disk helps.",
    thresholds=(INPUT_WAIT, FROM_DISK),
    severity="info",
    frees=(),
)


@COLD_FILES.found_by
def _check_cold_files(session: Session) -> Iterator[Finding]:
    weight, host, percent = weigh_input(session), session.host, from_disk_percent(session)
    if host is None or percent is None or not weight.worth_trying:
        return
    per_s, asked = host.read_bytes_per_s or 0.0, host.asked_bytes_per_s or 0.0
    # What comes over a network may count as read from storage.
    if percent < FROM_DISK.value or per_s < _LEAST_PER_S or remote_storage(session) is not None:
        return
    size, free = bytes_of_an_epoch(session), available_bytes(session)
    epoch = "How much an epoch reads is not known" if size is None else "An epoch reads "
    epoch += "" if size is None else memory_size(size)
    then = "" if size is None else ": later epochs and runs may read from memory, and wait less"
    if size is not None and size > free:
        then = ": later epochs read from disk too"
    yield COLD_FILES.finding(
        "informative",
        f"In the measured steps {percent:.0f} % of what the process read came from disk "
        f"({memory_size(min(per_s, asked))} of {memory_size(asked)} per second). {epoch}, and "
        f"{memory_size(free)} of memory are free{then}.",
        weight=weight,
        evidence={"from_disk_percent": percent, "epoch_bytes": size, "free_memory_bytes": free},
    )


_ABOUT_READING = ("sequential-files", "serial-flat-map", "parallel-map", "missing-cache")


def with_storage(session: Session, finding: Finding, op: Operation | None) -> Finding:
    """Return a finding on an operation that reads remote files with what that means."""
    said = finding.rule in _ABOUT_READING and finding.status in ("fail", "informative")
    if op is None or not said or not reads_files(session, op):
        return finding
    storage, each = remote_storage(session, op), ms_per_opened_file(op)
    if storage is None:
        return finding
    measured = "" if each is None else f" A call that opens one file takes {each:.1f} ms."
    advice = (
        f"{finding.advice} The files are on remote storage (`{storage}`), where each file opened "
        f"and each read waits for a network.{measured} Read more files at once than there are "
        "CPUs, put small files into large ones, or copy them to a local disk (`.cache(path)`)."
    )
    evidence = {**finding.evidence, "remote_storage": storage}
    if each is not None:
        evidence["opening_ms_per_file"] = round(each, 2)
    return finding.model_copy(update={"advice": advice.lstrip(), "evidence": evidence})
