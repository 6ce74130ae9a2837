"""A map that runs too few calls at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import cpus, pool_size
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    costlier,
    draws_random,
    measured_at,
    only_looks_up,
    operations,
    place_name,
    uses,
)
from pipediag.facts.python_callables import (
    WAITS_FIRST,
    hottest_line_sentence,
    python_calls,
    python_evidence,
    waits_first,
)
from pipediag.rules.bounds import parallel
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Change, Edit, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, OperationFunction
from pipediag.session.trials import Trial
from pipediag.tensorflow_names import LOOKUP, PYTHON_OPERATIONS, VARIABLES

WAITING_CALLS = 16
"""Own choice. A waiting call keeps its thread, and tf.data's own pool has one a CPU: with it, eight
generators on two CPUs gave 2.1 times the examples, and with 16 threads 4.5 times."""


OVERLAPPING = (
    "calls overlap, so that random draws land on other elements, side effects happen in another "
    "order, and a function that is not thread-safe breaks"
)
PARALLEL_MAP = Meta(
    id="parallel-map",
    name="Parallel calls of a map",
    title_failed="A map runs too few calls at once",
    title_informative="The calls of a map could run at once in another way",
    title_passed="No map is kept from running in parallel",
    why="tf.data makes a map parallel by itself only if it stands on the main path, its function "
    "is stateless and no number was given. Its pool has one thread a CPU, and a call that waits "
    "keeps its thread: 16 calls on two CPUs gave 49 batches/s, and 269 with a pool of 16.",
    edit="`num_parallel_calls=tf.data.AUTOTUNE`, or 16 calls with "
    "`options.threading.private_threadpool_size = 16`. Both are tried; off-CPU time only decides "
    "which goes first.",
    cost=f"Elements keep their order, but {OVERLAPPING}. More elements are held in memory, and "
    "what is waited for gets more requests at once.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, WAITS_FIRST),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    tried_when_informing=True,
)

NO_OVERLAP_TITLE = "More calls of a map at once do not help"
_NEEDS_PROCESSES = (
    "It needs the function in processes of its own, or rewritten: pipediag starts no process that "
    "would load the script again."
)


def check_parallel_map(session: Session) -> list[Finding]:
    """Two findings for a map whose calls can be made parallel in two ways, else one or none."""
    maps = operations(session, "map")
    if not maps:
        return [PARALLEL_MAP.finding("not-applicable", "The pipeline has no map.")]
    found = [one for op in maps for one in _of_map(session, op)]
    return found or [PARALLEL_MAP.finding("pass", "", evidence={"maps": len(maps)})]


def is_serial_and_stateful(op: Operation) -> bool:
    """Return True if TensorFlow runs this map's calls one after the other as they keep state."""
    return op.function is not None and op.function.stateful and _is_serial(op)


def _is_serial(op: Operation) -> bool:
    return op.parameters.get("num_parallel_calls") in (None, 1)


def _of_map(session: Session, op: Operation) -> Iterator[Finding]:
    outer = session.operation(op.inside_function_of)
    if outer is not None:
        nested = outer.kind in ("flat_map", "interleave") and _is_serial(op) and _is_serial(outer)
        if nested:
            yield from _tried_both_ways(session, op, outer)
    elif is_serial_and_stateful(op) or op.parameters.get("num_parallel_calls") == 1:
        yield from _tried_both_ways(session, op, None)
    elif calls_python(op) and not _is_serial(op):
        yield from _of_pool(session, op)


def _tried_both_ways(session: Session, op: Operation, outer: Operation | None) -> Iterator[Finding]:
    """What goes first fails, and the other way informs, so that one of them is advised."""
    costs = costlier(session, op, outer) if outer is not None else op
    weight = weigh(session, costs)
    evidence = {
        **weight.evidence,
        **python_evidence(op),
        "parallelism": op.parallelism,
        "cpus": cpus(session),
    }
    if op.function is not None and op.function.stateful:
        evidence["stateful_because"] = reason(op.function)
    if weight.status != "fail":
        yield PARALLEL_MAP.finding(weight.status, weight.sentence, op=op, evidence=evidence)
        return
    ways = [(_tuned_calls(op, outer), _tuned_advice(op, outer), cpus(session), True)]
    if op.function is not None and op.function.stateful:
        many = (_many_calls(session, op, outer), _many_advice(session, op), WAITING_CALLS, False)
        ways.insert(0 if waits_first(op) else 1, many)
    for place, (edit, advice, calls, on_cpu) in enumerate(ways):
        yield PARALLEL_MAP.finding(
            "informative" if place else "fail",
            advice,
            op=op,
            evidence=evidence,
            speedup_at_most=parallel(session, costs, calls, on_cpu=on_cpu),
            effect="same results" if _keeps_results(op) else None,
            edit=edit,
        )


def _of_pool(session: Session, op: Operation) -> Iterator[Finding]:
    """A map that runs Python in parallel already, on few threads."""
    pool = pool_size(session, op)
    evidence = {**python_evidence(op), "pool_threads": pool}
    if pool is None or pool >= WAITING_CALLS:
        yield PARALLEL_MAP.finding("pass", "", op=op, evidence=evidence)
        return
    self_ms = measured_at(session, op).self_ms_per_step
    delay = None if self_ms is None else self_ms / pool
    weight = weigh(session, op, delay)
    evidence = {**weight.evidence, **evidence}
    if weight.status != "fail":
        yield PARALLEL_MAP.finding(weight.status, weight.sentence, op=op, evidence=evidence)
        return
    yield PARALLEL_MAP.finding(
        "fail",
        _many_advice(session, op),
        op=op,
        evidence=evidence,
        edit=_many_calls(session, op, None),
    )


def _keeps_results(op: Operation) -> bool:
    return op.function is None or not op.function.stateful or only_looks_up(op.function)


def _tuned_calls(op: Operation, outer: Operation | None) -> Edit:
    return Edit(
        id=f"{PARALLEL_MAP.id}:{op.id}",
        label=f"num_parallel_calls=AUTOTUNE on the {place_name(op)}",
        changes=(SetParameters(op.id, {"num_parallel_calls": AUTOTUNE}),),
        caveat=_where_it_stands(outer),
    )


def _many_calls(session: Session, op: Operation, outer: Operation | None) -> Edit:
    """Calls by a fixed number, and as many threads to wait on where there are fewer."""
    changes: tuple[Change, ...] = (SetParameters(op.id, {"num_parallel_calls": WAITING_CALLS}),)
    label = f"{WAITING_CALLS} parallel calls on the {place_name(op)}"
    pool = pool_size(session, op)
    if pool is not None and pool < WAITING_CALLS:
        changes += (SetOptions({"threading.private_threadpool_size": WAITING_CALLS}),)
        label += f", on {WAITING_CALLS} threads"
    return Edit(
        f"{PARALLEL_MAP.id}:{op.id}:{WAITING_CALLS}", label, changes, caveat=_where_it_stands(outer)
    )


def _where_it_stands(outer: Operation | None) -> str | None:
    if outer is None:
        return None
    return (
        f"Measured with parallel calls on the map where it stands, not behind {call_name(outer)}."
    )


def _tuned_advice(op: Operation, outer: Operation | None) -> str:
    if outer is not None:
        advice = (
            f"Move {call_name(op)} behind {call_name(outer)}, where TensorFlow can run it in "
            "parallel, or give it `num_parallel_calls=tf.data.AUTOTUNE`."
        )
    elif op.function is not None and op.function.stateful:
        advice = (
            f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow keeps it "
            f"serial because it uses {reason(op.function)}."
        )
    else:
        advice = f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE` in place of 1."
    if draws_random(op.function):
        advice += " Use tf.random.stateless_* with a seed for each element to keep runs repeatable."
    return f"{advice}{_measured(op)}"


def _many_advice(session: Session, op: Operation) -> str:
    pool = pool_size(session, op)
    calls = f"Give {call_name(op)} `num_parallel_calls={WAITING_CALLS}`"
    if pool is None or pool >= WAITING_CALLS:
        return f"{calls}.{_measured(op)}"
    return (
        f"{calls} and the dataset as many threads. TensorFlow's own pool has {pool}: set "
        f"`options.threading.private_threadpool_size = {WAITING_CALLS}` and call "
        f"`ds.with_options(options)`.{_measured(op)}"
    )


def _measured(op: Operation) -> str:
    calls = python_calls(op)
    return f" {calls.sentence('call of its Python')}" if calls is not None else ""


def reason(function: OperationFunction | None) -> str:
    """Which kinds of operation make the function stateful, in words."""
    kinds: list[str] = []
    if python := uses(function, PYTHON_OPERATIONS):
        kinds.append("Python (" + ", ".join(python) + ")")
    if uses(function, LOOKUP):
        kinds.append("a table lookup")
    if draws_random(function):
        kinds.append("random numbers")
    elif uses(function, VARIABLES):
        kinds.append("a variable")
    return " and ".join(kinds) or "a stateful operation"


def settled(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with what trials showed of parallel calls, one advice for each map.

    The fastest way that was confirmed stays and says by how much calls overlap. Where Python was
    tried in every way and none helps, a finding says so and what remains to be done; it never
    stands beside a confirmed trial of parallel calls of the same map.
    """
    by_map: dict[str, list[Finding]] = {}
    for finding in findings:
        if (
            finding.rule == PARALLEL_MAP.id
            and finding.edit is not None
            and finding.op_id is not None
        ):
            by_map.setdefault(finding.op_id, []).append(finding)
    instead = {
        id(finding): kept
        for op_id, ways in by_map.items()
        for finding, kept in zip(ways, _one_advice(session, op_id, ways, findings), strict=True)
    }
    return [one for finding in findings for one in instead.get(id(finding), [finding])]


def _one_advice(
    session: Session, op_id: str, ways: list[Finding], findings: Sequence[Finding]
) -> list[list[Finding]]:
    confirmed = [one for one in ways if one.trial.state == "confirmed"]
    if confirmed:
        best = max(confirmed, key=lambda one: one.trial.speedup or 1.0)
        others = [one for one in ways if one is not best]
        return [[_overlaps(best, others)] if one is best else [] for one in ways]
    op = session.operation(op_id)
    refuted = all(one.trial.state == "refuted" for one in ways)
    if not refuted or op is None or not calls_python(op) or _helps_anyway(op_id, findings):
        return [[one] for one in ways]
    return [[_no_overlap(session, op, ways), ways[0]], *([] for _ in ways[1:])]


def _overlaps(best: Finding, others: Sequence[Finding]) -> Finding:
    assert best.edit is not None
    calls = WAITING_CALLS if best.edit.id.endswith(f":{WAITING_CALLS}") else None
    at_once = f"{calls} of them at once" if calls else "parallel calls"
    sentence = f"Calls overlap: {at_once} make it {best.trial.speedup or 1.0:.3g}x as fast."
    return best.model_copy(
        update={
            "status": "fail",
            "severity": PARALLEL_MAP.severity,
            "title": PARALLEL_MAP.title_failed,
            "advice": f"{best.advice} {sentence}",
            "evidence": {**best.evidence, **_also_tried(others)},
        }
    )


def _no_overlap(session: Session, op: Operation, ways: Sequence[Finding]) -> Finding:
    finding = PARALLEL_MAP.finding(
        "fail",
        f"More calls of {call_name(op)} at once do not help: they did not overlap (for Python code "
        f"that computes, the GIL is the usual reason).{_measured(op)} "
        f"{_pool(op, max(2, int(cpus(session))))} Or rewrite it in TensorFlow operations, or run "
        f"it once beforehand and read the result.{hottest_line_sentence(session)}",
        op=op,
        title=NO_OVERLAP_TITLE,
        evidence={**ways[0].evidence, **_also_tried(ways)},
        untried=_NEEDS_PROCESSES,
    )
    at_most = parallel(session, op, cpus(session), on_cpu=True)
    return finding.model_copy(update={"speedup_at_most": at_most})


def _also_tried(ways: Sequence[Finding]) -> dict[str, str]:
    tried = [
        f"{one.edit.label}: {one.trial.speedup:.3g}x"
        for one in ways
        if one.edit is not None and one.trial.speedup is not None
    ]
    return {"also_tried": "; ".join(tried)} if tried else {}


def _helps_anyway(op_id: str, findings: Sequence[Finding]) -> bool:
    """Return True if parallel calls of the map were confirmed in another finding's trial."""
    return any(
        isinstance(change, SetParameters)
        and change.op_id == op_id
        and "num_parallel_calls" in change.parameters
        for finding in findings
        if _confirmed(finding.trial) and finding.edit is not None
        for change in finding.edit.changes
    )


def _confirmed(trial: Trial) -> bool:
    return trial.state == "confirmed"


def _pool(op: Operation, count: int) -> str:
    """Code to paste: a pool, and the function called in it."""
    name = _name(op)
    return (
        f"Call it in processes: `pool = concurrent.futures.ProcessPoolExecutor({count}, "
        'mp_context=multiprocessing.get_context("spawn"))`, and in the map '
        f"`tf.numpy_function(lambda *x: pool.submit({name}, *x).result(), ...)` with "
        f"`num_parallel_calls={count}`. `{name}` must be at the top level of a module, best of one "
        "that does not import TensorFlow; what makes the pool and trains stands below "
        "`if __name__ == '__main__':`."
    )


def _name(op: Operation) -> str:
    """The function as a module would offer it; one without a name of its own is given one."""
    names = op.function.python_function_names if op.function else []
    last = names[0].rpartition(" ")[2].rpartition(".")[2] if names else ""
    return last if last.isidentifier() else "f"
