"""A flat_map whose own function does the work, for one element at a time."""

from __future__ import annotations

from pipediag.facts.graph_ops import calls_python, uses
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import call_name, operations, place_name
from pipediag.facts.python_callables import python_calls, python_evidence
from pipediag.rules.bounds import PARALLEL_CALLS, parallel
from pipediag.rules.pipeline.opened_in_turn import opens_in_turn
from pipediag.rules.pipeline.waiting_calls import WAITING_CALLS
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
    "through. An interleave holds a lock while it calls its function, whatever its "
    "num_parallel_calls: only what is read of the datasets that the function makes is read at "
    "once. With 50 ms of waiting in the function for each of 60 files, flat_map and interleave "
    "with 16 calls on 16 threads both took 3.1 s; the edit took 0.25 s.",
    edit="`ds.interleave(lambda x: tf.data.Dataset.from_tensors(x).flat_map(f), cycle_length=N, "
    "num_parallel_calls=N)` in place of `ds.flat_map(f)`: the function is then called by those who "
    "read. Or a map with num_parallel_calls does the work, and a flat_map behind it only hands out "
    "rows, in the order that they had. For Python, with 16 calls and "
    "`options.threading.private_threadpool_size = 16`.",
    cost="Rows of several elements alternate; what each of them opens is held at the same time. "
    "Python is called by several threads at once.",
    bound=PARALLEL_CALLS,
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    tried_when_informing=True,
)

MOST_AT_ONCE = 16
_OF_OTHER_RULES = (*READERS, "from_generator", "map")
"""What a function may hold that others look at: reading, generators, and maps."""


def check(session: Session) -> list[Finding]:
    """One finding for each operation that calls its function for one element at a time; where it
    opens files, another one with more calls than CPUs, as opening may wait."""
    outer = operations(session, "flat_map", "interleave")
    outer = [op for op in outer if op.inside_function_of is None]
    if not outer:
        return [META.finding("not-applicable", "The pipeline has no flat_map and no interleave.")]
    in_turn = [op for op in outer if opens_in_turn(op) and _works_itself(session, op)]
    if not in_turn:
        return [META.finding("pass", "")]
    return [finding for op in in_turn for finding in _findings(session, op)]


def _works_itself(session: Session, op: Operation) -> bool:
    """Whether its own function does more than to make a dataset that other rules look at."""
    inner = [one for one in operations(session) if one.inside_function_of == op.id]
    if calls_python(op) and not any(
        one.kind == "from_generator" or calls_python(one) for one in inner
    ):
        return True
    return not any(one.kind in _OF_OTHER_RULES for one in inner)


def _findings(session: Session, op: Operation) -> list[Finding]:
    weight = weigh(session, op)
    if not weight.worth_trying:
        return [META.finding(weight.status, weight.sentence, op=op, evidence=weight.evidence)]
    python, opens = calls_python(op), bool(uses(op.function, OPENS_FILES))
    evidence = {
        **weight.evidence,
        "opens_files": opens,
        "calls_python": python,
        **python_evidence(op),
    }
    as_cpus = max(2, min(MOST_AT_ONCE, int(cpus(session))))
    count = WAITING_CALLS if python else as_cpus
    found = [
        META.finding(
            weight.to_try,
            f"{weight.sentence} {_advice(op, count, threads=python)}".lstrip(),
            op=op,
            evidence=evidence,
            speedup_at_most=parallel(session, op, count, on_cpu=not python),
            edit=_edit(op, count, threads=python),
        )
    ]
    if opens and not python and count < WAITING_CALLS:
        found.append(
            META.finding(
                "informative",
                _advice(op, WAITING_CALLS, threads=True),
                op=op,
                evidence=evidence,
                title=f"{WAITING_CALLS} files opened at once overlap what opening waits for",
                edit=_edit(op, WAITING_CALLS, threads=True),
            )
        )
    return found


def _edit(op: Operation, count: int, *, threads: bool) -> Edit:
    calls = count if threads else AUTOTUNE
    replaced = Replace(
        op.id, "parallel_flat_map", {"cycle_length": count, "num_parallel_calls": calls}
    )
    changes: list[Change] = [replaced]
    label = f"{count} calls at once of the function of the {place_name(op)}"
    if threads:
        changes.append(SetOptions({"threading.private_threadpool_size": count}))
        label = f"{label}, on {count} threads"
    return Edit(
        id=f"{META.id}:{count}:{op.id}" if threads else f"{META.id}:{op.id}",
        label=label,
        changes=tuple(changes),
        caveat="Rows of several elements alternate.",
    )


def _advice(op: Operation, count: int, *, threads: bool) -> str:
    calls = str(count) if threads else "tf.data.AUTOTUNE"
    pool = (
        f", with `options.threading.private_threadpool_size = {count}` by "
        "`ds.with_options(options)`"
        if threads
        else ""
    )
    calls_measured = python_calls(op)
    measured = f" {calls_measured.sentence()}" if calls_measured is not None else ""
    order = (
        f" To keep the order of the rows, move the Python call into a map of its own, "
        f"`ds.map(..., num_parallel_calls={count})` on as many threads, before {call_name(op)}."
        if calls_python(op)
        else ""
    )
    return (
        f"Replace {call_name(op)} by `interleave(lambda x: "
        f"tf.data.Dataset.from_tensors(x).flat_map(f), cycle_length={count}, "
        f"num_parallel_calls={calls})`{pool}, so that its function `f` is called for several "
        "elements at once: a flat_map and a plain interleave call it for one at a time."
        f"{order}{measured}"
    )
