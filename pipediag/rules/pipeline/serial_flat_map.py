"""A flat_map whose own function does the work, for one element at a time."""

from __future__ import annotations

from pipediag.facts.graph_ops import calls_python, uses
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import call_name, operations, place_name
from pipediag.facts.python_work import python_use
from pipediag.rules.pipeline.opened_in_turn import opens_in_turn
from pipediag.rules.pipeline.waiting_calls import WAITING_CALLS
from pipediag.rules.prediction import PARALLEL_CALLS, parallel
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Change, Edit, Replace, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import OPENS_FILES, READERS

META = Meta(
    id="serial-flat-map",
    name="Work in the function of a flat_map",
    title_failed="The function of a flat_map works on one element at a time",
    title_passed="No flat_map holds the step up by its own function",
    looks_at="flat_map, and interleave with one call, whose own function opens files, decodes or "
    "calls Python; their delay.",
    why="A flat_map calls its function for the next element when the rows of the one before are "
    "through, and so does an interleave, with any number of calls: only what is read of the "
    "datasets that the function makes is read at once. With 20 ms of waiting in the function, "
    "interleave in place of flat_map gave 0.91 times the steps.",
    edit="`ds.interleave(lambda x: tf.data.Dataset.from_tensors(x).flat_map(f), cycle_length=N, "
    "num_parallel_calls=N)` in place of `ds.flat_map(f)`: the function is then called by those who "
    "read. Or a map with num_parallel_calls does the work, and a flat_map behind it only hands out "
    "rows. Where the function waits in Python, with "
    "`options.threading.private_threadpool_size = 16`.",
    cost="Rows of several elements alternate; what each of them opens is held at the same time.",
    prediction=PARALLEL_CALLS,
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
)

MOST_AT_ONCE = 16
_OF_OTHER_RULES = (*READERS, "from_generator", "map")
"""What a function may hold that others look at: reading, generators, and maps."""


def check(session: Session) -> list[Finding]:
    """One finding for each operation that calls its function for one element at a time."""
    outer = operations(session, "flat_map", "interleave")
    outer = [op for op in outer if op.inside_function_of is None]
    if not outer:
        return [META.finding("not-applicable", "The pipeline has no flat_map and no interleave.")]
    in_turn = [op for op in outer if opens_in_turn(op) and _works_itself(session, op)]
    if not in_turn:
        return [META.finding("pass", "")]
    return [_finding(session, op) for op in in_turn]


def _works_itself(session: Session, op: Operation) -> bool:
    return not any(
        inner.inside_function_of == op.id for inner in operations(session, *_OF_OTHER_RULES)
    )


def _finding(session: Session, op: Operation) -> Finding:
    weight = weigh(session, op)
    if weight.status != "fail":
        return META.finding(weight.status, weight.sentence, op=op, evidence=weight.evidence)
    waits = calls_python(op) and python_use(session, op).work == "waits"
    count = WAITING_CALLS if waits else max(2, min(MOST_AT_ONCE, int(cpus(session))))
    opens = bool(uses(op.function, OPENS_FILES))
    return META.finding(
        "fail",
        _advice(op, count, waits=waits, opens=opens),
        op=op,
        evidence={**weight.evidence, "opens_files": opens, "calls_python": calls_python(op)},
        own_prediction=parallel(session, op, count, on_cpu=not waits),
        edit=_edit(op, count, waits=waits),
    )


def _edit(op: Operation, count: int, *, waits: bool) -> Edit:
    calls = count if waits else AUTOTUNE
    replaced = Replace(
        op.id, "parallel_flat_map", {"cycle_length": count, "num_parallel_calls": calls}
    )
    changes: list[Change] = [replaced]
    label = f"{count} calls at once of the function of the {place_name(op)}"
    if waits:
        changes.append(SetOptions({"threading.private_threadpool_size": WAITING_CALLS}))
        label = f"{label}, on {WAITING_CALLS} threads"
    return Edit(
        id=f"{META.id}:{op.id}",
        label=label,
        changes=tuple(changes),
        caveat="Rows of several elements alternate.",
    )


def _advice(op: Operation, count: int, *, waits: bool, opens: bool) -> str:
    does = "opens and decodes its files" if opens else "does its work"
    calls = str(count) if waits else "tf.data.AUTOTUNE"
    threads = (
        f", with `options.threading.private_threadpool_size = {WAITING_CALLS}` by "
        "`ds.with_options(options)`"
        if waits
        else ""
    )
    return (
        f"Replace {call_name(op)} by `interleave(lambda x: "
        f"tf.data.Dataset.from_tensors(x).flat_map(f), cycle_length={count}, "
        f"num_parallel_calls={calls})`{threads}, so that those call its function `f` who read. As "
        f"it is, `f` {does} for one element at a time, as it would in a plain interleave."
    )
