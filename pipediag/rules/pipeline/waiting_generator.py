"""A Python generator that waits, where nothing else is read meanwhile."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import (
    call_name,
    costlier,
    delay_ms,
    operations,
    place_name,
    upstream,
)
from pipediag.facts.python_sources import WAITS, beside_ms, running_line, waits, waits_percent
from pipediag.facts.python_work import COMPUTES, SOURCE_CPU, python_is_busy, source_cpu_ms
from pipediag.rules.pipeline.opened_in_turn import opened_at_once, opens_in_turn
from pipediag.rules.pipeline.waiting_calls import WAITING_CALLS
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Replace, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="waiting-generator",
    name="Generator that waits",
    title_failed="A Python generator waits for its data, and nothing else is read meanwhile",
    title_passed="No generator keeps the step waiting",
    looks_at="from_generator, by itself or within a flat_map or an interleave of one: its delay, "
    "and the CPU time of the threads that run Python.",
    why="A generator that waits for a disk, a database or a network leaves the interpreter to "
    "others, so several of them can wait at once. One that computes does not: the interpreter lock "
    "lets one of them compute at a time, unless its work is done in code that releases the lock. "
    "Where one generator waits and computes, both hold.",
    edit="`shards.interleave(lambda s: tf.data.Dataset.from_generator(rows, ..., args=(s,)), "
    "cycle_length=N, num_parallel_calls=N)`, where each generator reads a part of the data, with "
    "`options.threading.private_threadpool_size = 16`. A trial can't divide the source of a single "
    "generator: it reads two copies of it side by side, each with all of the data, which says what "
    "two halves gain at most.",
    cost="Elements of several generators alternate; each holds what it has open; generators that "
    "share a connection, a file or a random state must be given their own.",
    bound="For a single generator, of two parts: the longest of the step on a "
    "repeated batch, its CPU time, and half of its time.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, SOURCE_CPU, COMPUTES, WAITS),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    title_informative="One Python generator is read at a time",
    tried_when_informing=True,
)

_COPIES = 2

_POOL_OF_THREADS = SetOptions({"threading.private_threadpool_size": WAITING_CALLS})
_POOL = (
    f", with `options.threading.private_threadpool_size = {WAITING_CALLS}` by "
    "`ds.with_options(options)`."
)

_DIVIDE = (
    "Let the generator take a part of the data as argument, and read several parts at once: "
    "`tf.data.Dataset.range(n).interleave(lambda part: tf.data.Dataset.from_generator(..., "
    "args=(part,)), cycle_length=n, num_parallel_calls=n)`"
)


def check(session: Session) -> list[Finding]:
    """One finding for each generator."""
    generators = operations(session, "from_generator")
    if not generators:
        return [META.finding("not-applicable", "The pipeline has no from_generator.")]
    return [_finding(session, op) for op in generators]


def _finding(session: Session, op: Operation) -> Finding:
    outer = session.operation(op.inside_function_of)
    if outer is not None and not opens_in_turn(outer):
        return META.finding("pass", "Several generators are read at once.", op=op)
    costs = costlier(session, op, outer)
    weight = weigh(session, costs)
    evidence = {
        **weight.evidence,
        "source_cpu_ms_per_step": source_cpu_ms(session),
        "source_waits_percent": waits_percent(session, costs),
    }
    if weight.status != "fail":
        status = "pass" if weight.status == "informative" else weight.status
        return META.finding(status, weight.sentence, op=op, evidence=evidence)
    busy = python_is_busy(session)
    if busy is None:
        reason = "Whether the generator waits or computes was not measured."
        return META.finding("inconclusive", reason, op=op, evidence=evidence)
    if busy and not waits(session, costs):
        if outer is not None:
            return META.finding("pass", "It computes rather than waits.", op=op, evidence=evidence)
        return META.finding(
            "informative",
            _doubt(op),
            op=op,
            place=running_line(session, op),
            evidence=evidence,
            edit=_side_by_side(op),
        )
    return META.finding(
        "fail",
        _advice(session, op, outer),
        op=op,
        place=running_line(session, op),
        evidence=evidence,
        speedup_at_most=_at_most(session, op),
        edit=_side_by_side(op) if outer is None else _edit(session, op, outer),
    )


def _at_most(session: Session, op: Operation) -> float | None:
    after = beside_ms(session, op, _COPIES)
    if session.steps is None or after is None:
        return None
    return round(max(1.0, session.steps.mean_ms / after), 3)


def _side_by_side(op: Operation) -> Edit:
    """Two copies: how the source can be divided, only its author knows."""
    copies = Replace(op.id, "interleave", {"cycle_length": _COPIES, "num_parallel_calls": _COPIES})
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"two copies of the {place_name(op)} side by side, on {WAITING_CALLS} threads",
        changes=(copies, _POOL_OF_THREADS),
        caveat="Both copies read all of the data: it says what two halves would gain at most, and "
        "dividing the source is left to you.",
    )


def _edit(session: Session, op: Operation, outer: Operation) -> Edit:
    count = _at_once(session, outer)
    change, label = opened_at_once(outer, count, count, "generators")
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"{label}, on {WAITING_CALLS} threads",
        changes=(change, _POOL_OF_THREADS),
        caveat="Elements of several generators alternate.",
    )


def _at_once(session: Session, outer: Operation) -> int:
    """As many as there are; waiting takes no CPU, so their number does not bound it."""
    cycle = outer.parameters.get("cycle_length")
    if outer.kind == "interleave" and isinstance(cycle, int) and cycle > 1:
        return cycle
    known = [op.cardinality or 0 for op in upstream(session, outer)]
    return max(2, min([WAITING_CALLS, *(count for count in known if count > 0)]))


def _spends(session: Session, op: Operation) -> str:
    of = f"{delay_ms(session, op) or 0.0:.1f} ms of each step"
    percent = waits_percent(session, op)
    if percent is None or 100.0 - percent < COMPUTES.value:
        return f"waits for most of {of}"
    return f"takes {of}, of which it waits for {percent:.0f} % and computes in the rest"


def _doubt(op: Operation) -> str:
    return (
        f"The generator of {call_name(op)} computes rather than waits. Several at once gain only "
        "as far as its work releases the interpreter lock, as NumPy on large arrays does: two "
        f"copies of it read side by side say what dividing it would gain at most. {_DIVIDE}."
    )


def _advice(session: Session, op: Operation, outer: Operation | None) -> str:
    if outer is None:
        return (
            f"{_DIVIDE}{_POOL} That of {call_name(op)} {_spends(session, op)}. Two copies of it "
            "read side by side say what dividing it gains at most."
        )
    count = _at_once(session, outer)
    if outer.kind == "interleave":
        return f"Its generators wait: give {call_name(outer)} `num_parallel_calls={count}`{_POOL}"
    return (
        f"Its generators wait, and can wait together: replace {call_name(outer)} by "
        f"`interleave(..., cycle_length={count}, num_parallel_calls={count})`{_POOL}"
    )
