"""Many files read one after the other, where reading is what the step waits for."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import call_name, costlier, delay_ms, operations
from pipediag.facts.step import class_ms
from pipediag.rules.bounds import less_input
from pipediag.rules.pipeline.files_at_once import files_at_once, how_many, read_in_turn
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import READERS

FROM_DISK = Threshold(
    "bytes read from disk",
    10.0,
    "% of the bytes that the reader delivers",
    "own choice: below it the edit is tried after those of other rules",
)
META = Meta(
    id="sequential-files",
    name="Sequential file reading",
    title_failed="Files are read one after the other, and reading is what the step waits for",
    title_passed="File reading does not hold the step up",
    looks_at="Readers of several files without num_parallel_reads, and readers within a flat_map "
    "or an interleave of one; their delay; how much really comes from disk.",
    why="One reader waits for one file at a time. From a slow disk or a network several waits can "
    "overlap; from the page cache there is nothing to wait for, and interleaving local warm files "
    "was 36 % slower (1426 batches/s in place of 2213).",
    edit="`num_parallel_reads=tf.data.AUTOTUNE` for the reader, or "
    "`files.interleave(TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)` for the flat_map.",
    cost="Records of several files alternate; memory for each open file; slower on warm local "
    "files.",
    bound="For compressed files, as many readers as there are CPUs. None for plain "
    "files: what the disk gives to several readers can't be known from one.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, FROM_DISK),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding for each sequential reader."""
    readers = operations(session, *READERS)
    if not readers:
        return [META.finding("not-applicable", "The pipeline reads no files with a reader.")]
    sequential = [op for op in readers if read_in_turn(session, op)]
    if not sequential:
        return [META.finding("pass", "")]
    return [_finding(session, op) for op in sequential]


def _finding(session: Session, op: Operation) -> Finding:
    outer = session.operation(op.inside_function_of)
    costs = op if _maps_too(session, outer) else costlier(session, op, outer)
    delay = _delay_ms(session, costs)
    weight = weigh(session, costs, delay)
    disk = _disk_percent(session, costs)
    packed = op.parameters.get("compression_type") not in (None, "")
    evidence = {
        **weight.evidence,
        "file_count": op.parameters.get("file_count"),
        "from_disk_percent": disk,
        "io_wait_percent": session.host.io_wait_percent if session.host else None,
        "compressed": packed,
    }
    if weight.status == "inconclusive":
        # The step waits for input, and only what reading takes of that is not known.
        edit = files_at_once(session, op, META.id)
        said = f"{weight.sentence} A trial with several files at once tells."
        return META.finding("informative", said, op=op, evidence=evidence, edit=edit)
    if weight.status != "fail":
        return META.finding(weight.status, weight.sentence, op=op, evidence=evidence)
    if not packed and disk is not None and disk < FROM_DISK.value:
        said = (
            f"{disk:.0f} % of what {call_name(op)} delivers was read from the disk meanwhile. "
            "A trial with several files at once tells whether that helps."
        )
        edit = files_at_once(session, op, META.id)
        return META.finding("informative", said, op=op, evidence=evidence, edit=edit)
    return META.finding(
        "fail",
        _advice(session, op, outer),
        op=op,
        evidence=evidence,
        speedup_at_most=_at_most(session, delay, packed),
        edit=files_at_once(session, op, META.id),
    )


def _disk_percent(session: Session, op: Operation) -> float | None:
    """What was read from disk, in percent of the bytes that the operation delivers."""
    host, steps = session.host, session.steps
    if host is None or host.read_bytes_per_s is None or steps is None:
        return None
    if op.elements is None or not op.bytes_per_element:
        return None
    delivered_per_s = op.elements * op.bytes_per_element / (steps.mean_ms / 1000.0)
    return min(100.0, 100.0 * host.read_bytes_per_s / delivered_per_s)


def _advice(session: Session, op: Operation, outer: Operation | None) -> str:
    if outer is None:
        return f"Give {call_name(op)} `num_parallel_reads=tf.data.AUTOTUNE`."
    free = "with `deterministic=False` where order is free"
    if outer.kind == "interleave":
        return f"Give {call_name(outer)} `num_parallel_calls=tf.data.AUTOTUNE`, {free}."
    return (
        f"Replace {call_name(outer)} by `interleave(..., cycle_length={how_many(session)}, "
        f"num_parallel_calls=tf.data.AUTOTUNE)`, {free}."
    )


def _maps_too(session: Session, outer: Operation | None) -> bool:
    """Whether the outer operation's function also maps, so that its cost is not that of reading."""
    return outer is not None and any(
        op.inside_function_of == outer.id for op in operations(session, "map")
    )


def _delay_ms(session: Session, op: Operation) -> float | None:
    """Delay of reading, with the input wait that no operation explains.

    A reader of several files has an iterator for each, and tf.data's model forgets those that have
    ended, with what they cost.
    """
    measured = delay_ms(session, op)
    if measured is None:
        return None
    every = session.pipeline.ops if session.pipeline else []
    explained = sum(delay_ms(session, other) or 0.0 for other in every if other.fused_into is None)
    return measured + max(0.0, class_ms(session, ["input_wait"]) - explained)


def _at_most(session: Session, delay: float | None, packed: bool) -> float | None:
    if not packed or delay is None:
        return None
    return less_input(session, delay * (1 - 1 / cpus(session)), on_cpu=True)
