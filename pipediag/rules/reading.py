"""Files that are read or opened one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.machine import cpus
from pipediag.facts.names import memory_size
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    costlier,
    delay_ms,
    goes_by_order,
    operations,
    place_name,
    upstream,
    uses,
)
from pipediag.facts.python_callables import call_times, python_evidence
from pipediag.rules.parallel_maps import ON_THREADS, WAITING_CALLS, on_threads
from pipediag.rules.relevance import less_input, parallel, uncounted_wait_ms, weigh, weigh_input
from pipediag.rules.rule import pipeline_rule
from pipediag.session.edits import AUTOTUNE, Edit, Replace, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import OPENS_FILES, READERS
from pipediag.vocabulary import Scalar

# Storage: a disk whose files memory will hold later, or a network


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


def from_disk_percent(session: Session) -> float | None:
    """Return how much of what the process read came from storage, in percent of what it asked."""
    host = session.host
    if host is None or host.read_bytes_per_s is None or not host.asked_bytes_per_s:
        return None
    # The system reads ahead of what is asked for.
    return min(100.0, 100.0 * host.read_bytes_per_s / host.asked_bytes_per_s)


FROM_DISK = Threshold("read from disk", 10.0, "% of what the process reads", "own choice")
_LEAST_PER_S = 1e6
"""Bytes. Own choice: less from a disk is what programs write and look up beside their data."""

COLD_FILES = pipeline_rule(
    id="cold-files",
    title="Know that the measured steps read from disk",
    why="Linux keeps files that were read in free memory. Steps that read them from disk wait "
    "longer than those of later epochs, or of a second run.",
    fix="Compare runs of the same state only: read the files once before (`cat FILES > /dev/null`) "
    "or measure a later epoch.",
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
    yield COLD_FILES.finding(
        "informative",
        f"In the measured steps {percent:.0f} % of what the process read came from disk "
        f"({memory_size(min(per_s, asked))} of {memory_size(asked)} per second).",
        weight=weight,
        evidence={"from_disk_percent": percent},
    )


_ABOUT_READING = ("sequential-files", "serial-flat-map", "parallel-map", "missing-cache")


def with_storage(session: Session, finding: Finding, op: Operation | None) -> Finding:
    """Return a finding on an operation that reads remote files with what that means."""
    said = finding.rule in _ABOUT_READING and finding.status in ("fail", "informative")
    if op is None or not said or not reads_files(session, op):
        return finding
    storage = remote_storage(session, op)
    if storage is None:
        return finding
    advice = (
        f"{finding.advice} The files are on remote storage (`{storage}`), where each file opened "
        "and each read waits for a network. Read more files at once than there are CPUs, put small "
        "files into large ones, or copy them to a local disk (`.cache(path)`)."
    )
    evidence = {**finding.evidence, "remote_storage": storage}
    return finding.model_copy(update={"advice": advice.lstrip(), "evidence": evidence})


MOST_AT_ONCE = 16


def opens_in_turn(outer: Operation) -> bool:
    """Return True if the operation reads from one of its function's datasets at a time."""
    calls = outer.parameters.get("num_parallel_calls")
    return outer.kind == "flat_map" or (outer.kind == "interleave" and calls in (None, 1))


def opened_at_once(
    outer: Operation, count: int, calls: int, sources: str, id: str, **given: Any
) -> Edit:
    """Return the edit by which `count` sources are open at once, and read by so many calls."""
    at_once: dict[str, Scalar] = {"num_parallel_calls": calls}
    said = f"num_parallel_calls={'AUTOTUNE' if calls == AUTOTUNE else calls}"
    if outer.kind == "flat_map" or outer.parameters.get("cycle_length") == 1:
        # So many calls would still wait for the one that is open.
        at_once["cycle_length"] = count
        said = f"cycle_length={count}, {said}"
    if outer.kind == "flat_map":
        label = f"interleave of {count} {sources} instead of the {place_name(outer)}"
        return Edit(id, label, (Replace(outer.id, "interleave", at_once),), **given)
    change = SetParameters(outer.id, at_once)
    return Edit(id, f"{said} on the {place_name(outer)}", (change,), **given)


def reordering(session: Session, op: Operation, advice: str, edit: Edit | None) -> dict[str, Any]:
    """Return the advice and the edit of a finding, by which elements come in another order behind
    the operation; in place of the edit, what goes by that order."""
    by_order = goes_by_order(session, op)
    if by_order is None:
        return {"advice": advice, "edit": edit}
    why = f"The {place_name(by_order)} goes by the order of the elements, which this would change."
    return {"advice": f"{advice} {why}", "effect": "not safe here", "untried": why}


def read_in_turn(session: Session, reader: Operation) -> bool:
    """Return True if the reader reads one of several files at a time."""
    outer = session.operation(reader.inside_function_of)
    if outer is not None:
        return opens_in_turn(outer)
    if reader.kind == "SqlDataset":
        return False
    files = reader.parameters.get("file_count")
    several = files is None or (isinstance(files, int) and files > 1)
    return several and reader.parameters.get("num_parallel_reads") in (None, 1)


def _as_many_at_once(session: Session, op: Operation) -> int:
    """Return as many as CPUs read from a disk; more where the reads wait for a network."""
    if remote_storage(session, op) is not None:
        return MOST_AT_ONCE
    return max(2, min(MOST_AT_ONCE, int(cpus(session))))


def files_at_once(
    session: Session, reader: Operation, rule: str, *, whole_epoch: bool = False
) -> Edit | None:
    """Return several files at once: by the reader itself, or by the operation that opens them; None
    for a reader that can't, and has to be given one file at a time."""
    id, outer = f"{rule}:{reader.id}", session.operation(reader.inside_function_of)
    caveat = "Measured on the files as they are then: what was read before may be in memory."
    given: dict[str, Any] = {"caveat": caveat, "whole_epoch": whole_epoch}
    if outer is not None:
        count = _as_many_at_once(session, outer)
        return opened_at_once(outer, count, AUTOTUNE, "files", id, **given)
    if reader.kind == "CsvDataset":
        return None
    local = remote_storage(session, reader) is None
    reads, said = (AUTOTUNE, "AUTOTUNE") if local else (MOST_AT_ONCE, f"{MOST_AT_ONCE}")
    change = SetParameters(reader.id, {"num_parallel_reads": reads})
    return Edit(id, f"num_parallel_reads={said} on the {place_name(reader)}", (change,), **given)


_ONE_EACH = (
    "`tf.data.Dataset.from_tensor_slices(files).interleave(lambda file: "
    "tf.data.experimental.CsvDataset(file, ...), num_parallel_calls=tf.data.AUTOTUNE)`"
)
SEQUENTIAL_FILES = pipeline_rule(
    id="sequential-files",
    title="Read several files at once",
    why="One reader waits for one file at a time. On a slow disk or a network, these waits can "
    "overlap. Interleaving local warm files was 36 % slower (1,426 batches/s instead of 2,213).",
    fix="Use `num_parallel_reads=tf.data.AUTOTUNE` for the reader, or `interleave` instead of the "
    "flat_map, with `num_parallel_calls`. Records of several files then alternate.",
    thresholds=(INPUT_WAIT, OPERATION_SHARE, FROM_DISK),
    effect="same up to order or rounding",
)


@SEQUENTIAL_FILES.found_at(*READERS)
def _check_sequential_files(session: Session, op: Operation) -> Iterator[Finding]:
    if not read_in_turn(session, op):
        return
    outer = session.operation(op.inside_function_of)
    maps = operations(session, "map")
    # The cost of an outer function that also maps is not that of reading.
    maps_too = outer is not None and any(one.inside_function_of == outer.id for one in maps)
    costs = op if maps_too else costlier(session, op, outer)
    delay = delay_ms(session, costs)
    if delay is not None:
        # tf.data forgets the iterators of files that have ended, with what they cost: the input
        # wait that no operation explains is theirs.
        delay += uncounted_wait_ms(session)
    # What comes over a network counts as read from storage or not.
    disk = from_disk_percent(session) if remote_storage(session, costs) is None else None
    weight = weigh(session, costs, delay)
    packed = op.parameters.get("compression_type") not in (None, "")
    evidence = {"file_count": op.parameters.get("file_count"), "from_disk_percent": disk}
    finding = partial(SEQUENTIAL_FILES.finding, op=op, weight=weight, evidence=evidence)
    if weight.status not in ("fail", "inconclusive"):
        yield finding(weight.status, weight.sentence)
        return
    edit = files_at_once(session, op, SEQUENTIAL_FILES.id)
    how = edit.label if edit is not None else _ONE_EACH
    advice = weight.before(f"Read several files at once: {how}.")
    in_memory = not packed and disk is not None and disk < FROM_DISK.value
    if in_memory:
        advice += f" Only {disk:.0f} % of what the process read came from disk."
    given = reordering(session, session.operation(op.inside_function_of) or op, advice, edit)
    less = delay * (1 - 1 / cpus(session)) if packed and delay is not None else None
    yield finding(
        # Where only what reading takes of the wait is not known, or where the files lie in memory,
        # a trial tells.
        "informative" if in_memory or weight.status == "inconclusive" else "fail",
        **{"untried": "Each file needs a reader of its own.", **given},
        speedup_at_most=None if less is None else less_input(session, less, on_cpu=True),
    )


SERIAL_FLAT_MAP = pipeline_rule(
    id="serial-flat-map",
    title="Run the function of `flat_map` in parallel",
    why="A flat_map calls its function for one element at a time. So does an interleave, which "
    "holds a lock meanwhile: only the datasets that the function returns are read in parallel.",
    fix="Use `ds.interleave(lambda x: tf.data.Dataset.from_tensors(x).flat_map(f), "
    "cycle_length=N, num_parallel_calls=N)` instead of `ds.flat_map(f)`. Rows of several elements "
    "then alternate.",
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    effect="same up to order or rounding",
)
_OF_OTHER_RULES = (*READERS, "from_generator", "map")
"""Operations in a function that other rules cover: reading, generators, and maps."""


@SERIAL_FLAT_MAP.found_at("flat_map", "interleave")
def _check_serial_flat_map(session: Session, op: Operation) -> Iterator[Finding]:
    """Yield a finding on an operation that calls its function for one element at a time."""
    inner = [one for one in operations(session) if one.inside_function_of == op.id]
    python, covered = calls_python(op), any(one.kind in _OF_OTHER_RULES for one in inner)
    # Its own function's Python is its own work, unless the datasets that it makes call some too.
    theirs = any(one.kind == "from_generator" or calls_python(one) for one in inner)
    covered = covered and (theirs or not python)
    if op.inside_function_of is not None or not opens_in_turn(op) or covered:
        return
    weight = weigh(session, op)
    if not weight.worth_trying:
        return
    count = WAITING_CALLS if python else _as_many_at_once(session, op)
    advice, edit = _in_parallel(op, count, threads=python)
    at_most = parallel(session, op, count, on_cpu=not python)
    finding = partial(SERIAL_FLAT_MAP.finding, op=op, weight=weight, evidence=python_evidence(op))
    given = reordering(session, op, weight.before(advice), edit)
    yield finding(weight.to_try, speedup_at_most=at_most, **given)


def _in_parallel(op: Operation, count: int, *, threads: bool) -> tuple[str, Edit]:
    """Return the advice and the edit by which so many calls run at once, each on its thread."""
    edit = SERIAL_FLAT_MAP.edit(
        f"{count}:{op.id}" if threads else op,
        f"{count} parallel calls of the function of the {place_name(op)}",
        Replace(
            op.id,
            "parallel_flat_map",
            {"cycle_length": count, "num_parallel_calls": count if threads else AUTOTUNE},
        ),
        caveat="Rows of several elements alternate.",
    )
    calls, on = (str(count), f", with {ON_THREADS}") if threads else ("tf.data.AUTOTUNE", "")
    advice = (
        f"Replace {call_name(op)} by `interleave(lambda x: "
        f"tf.data.Dataset.from_tensors(x).flat_map(f), cycle_length={count}, "
        f"num_parallel_calls={calls})`{on}, with `f` its function.{call_times(op)}"
    )
    return advice, on_threads(edit, count) if threads else edit
