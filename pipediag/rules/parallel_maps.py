"""Maps that run too few calls at once: parallel calls, threads for those that wait, processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.machine import cpus, pool_size
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    costlier,
    delay_ms,
    draws_random,
    measured_at,
    only_looks_up,
    operations,
    option,
    place_name,
    uses,
)
from pipediag.facts.python_callables import (
    WAITS_FIRST,
    call_times,
    hottest_line_sentence,
    python_calls,
    python_evidence,
    waits_first,
)
from pipediag.rules.relevance import parallel, weigh, weigh_first_batches, weigh_input
from pipediag.rules.rule import pipeline_rule
from pipediag.session.edits import (
    AUTOTUNE,
    IN_PROCESSES,
    Change,
    Edit,
    Replace,
    SetOptions,
    SetParameters,
)
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import DEFAULT_SWITCHES, PYTHON_OPERATIONS

WAITING_CALLS = 16
"""Own choice. A waiting call keeps its thread, and tf.data's own pool has one a CPU: with it, eight
generators on two CPUs gave 2.1 times the examples, and with 16 threads 4.5 times."""
ON_THREADS = (
    f"`options.threading.private_threadpool_size = {WAITING_CALLS}` (`ds.with_options(options)`)"
)
COMPUTES_FOR = Threshold(
    "call of a Python function", 2.0, "ms", "measured: passing arguments on takes 0.4 ms a call"
)
WAITS = Threshold(
    "off-CPU time of parallel Python", 50.0, "% of its calls' time", "own choice: some is the GIL's"
)
MOST_PROCESSES = 16
"""Own choice: each is a copy of the script's, of which what it writes takes memory."""
EACH_ROW = "python-each-row"
"""Id of the rule on maps whose Python can be called for a batch, in one process or several."""
PARALLEL_MAP = pipeline_rule(
    id="parallel-map",
    title="Run `map` in parallel",
    why="tf.data runs only stateless maps in parallel by itself. Its pool has one thread per CPU, "
    "which a waiting call keeps: 16 calls on two CPUs gave 49 batches/s, and 269 on 16 threads.",
    fix="Set `num_parallel_calls=tf.data.AUTOTUNE`, or use 16 calls on 16 threads, or call a "
    "`numpy_function` in processes (copies by `fork`, without TensorFlow); all are tried. Random "
    "draws then go to other elements, and a function that is not thread-safe breaks.",
    thresholds=(INPUT_WAIT, OPERATION_SHARE, WAITS_FIRST, COMPUTES_FOR, WAITS),
    effect="same up to order or rounding",
)


_Way = tuple[str, Edit]
"""A way to call a map: the advice, and its edit."""


@PARALLEL_MAP.found_at("map")
def _check_parallel_map(session: Session, op: Operation) -> Iterator[Finding]:
    """Yield two findings for a map whose calls can be made parallel in two ways, else one."""
    outer = session.operation(op.inside_function_of)
    if outer is not None:
        if outer.kind in ("flat_map", "interleave") and _is_serial(op) and _is_serial(outer):
            yield from _tried_both_ways(session, op, outer)
    elif is_serial_and_stateful(op) or op.parameters.get("num_parallel_calls") == 1:
        # The maps of one line are changed together, as the first of them that costs most.
        alike = [one for one in of_one_line(session.ops, op) if is_serial_and_stateful(one)]
        if op is max(alike or [op], key=lambda one: delay_ms(session, one) or 0.0):
            yield from _tried_both_ways(session, op, None)
    elif calls_python(op) and not _is_serial(op):
        yield from _more_than_in_parallel(session, op)


def _more_than_in_parallel(session: Session, op: Operation) -> Iterator[Finding]:
    """Yield the ways for a map that runs Python in parallel already: more threads, processes."""
    pool, self_ms = pool_size(session, op), measured_at(session, op).self_ms_per_step
    weight = weigh(session, op, None if self_ms is None or not pool else self_ms / pool)
    ways, times = _in_processes(session, op), python_calls(op)
    if _lacks_threads(session, op) and (times is None or times.off_cpu_percent >= WAITS.value):
        ways.insert(0, _many_calls(session, [op], op, None))
    evidence = {**python_evidence(op), "pool_threads": pool}
    finding = partial(PARALLEL_MAP.finding, op=op, weight=weight, evidence=evidence)
    if ways and weight.status != "fail":
        yield finding(weight.status, weight.before(ways[0][0]))
        return
    for place, (advice, edit) in enumerate(ways):
        yield finding("informative" if place else "fail", advice, edit=edit)


def of_one_line(ops: Iterable[Operation], op: Operation) -> list[Operation]:
    """Return the maps without a number of calls that the same line of the script makes, which are
    changed together; the map alone where it has a number."""
    alike = [
        one
        for one in ops
        if one.kind == "map"
        and (one.file, one.line) == (op.file, op.line)
        and one.inside_function_of is None
        and one.parameters.get("num_parallel_calls") is None
        and not one.made_by_framework
    ]
    return alike if op in alike and op.line is not None else [op]


def is_serial_and_stateful(op: Operation) -> bool:
    """Return True if TensorFlow runs this map's calls one after the other as they keep state."""
    return op.function is not None and op.function.stateful and _is_serial(op)


def _is_serial(op: Operation) -> bool:
    return op.parameters.get("num_parallel_calls") in (None, 1)


def _tried_both_ways(session: Session, op: Operation, outer: Operation | None) -> Iterator[Finding]:
    """Yield the first way as a failure and the second as information: one of them is advised."""
    costs, alike = costlier(session, op, outer), of_one_line(session.ops, op)
    serial = [one for one in alike if is_serial_and_stateful(one)]
    # Those that are fused are counted at one of them.
    delays = {measured_at(session, one).id: delay_ms(session, one) for one in serial}.values()
    together = len(delays) > 1 and None not in delays
    delay = sum(one for one in delays if one is not None) if together else None
    weight = weigh(session, costs, delay)
    stateful = op.function is not None and op.function.stateful
    functions = [one.function for one in alike if one.function is not None]
    keeps_other_state = any(one.stateful and not only_looks_up(one) for one in functions)
    finding = partial(
        PARALLEL_MAP.finding,
        op=op,
        weight=weight,
        evidence={**python_evidence(op), "parallelism": op.parallelism, "cpus": cpus(session)},
        effect=None if keeps_other_state else "same results",
    )
    tuned = tuned_calls(alike, op, PARALLEL_MAP.id, _where_measured(outer))
    early = weigh_first_batches(session, costs, 1.0 / max(1.0, cpus(session)))
    if early is not None:
        advice = f"{_tuned_advice(op, outer)} Each epoch's first batch waits for it."
        whole = replace(tuned, whole_epoch=True)
        yield finding(
            early.status, early.before(advice), weight=early, edit=whole, part="epoch_start"
        )
        return
    if weight.status != "fail":
        yield finding(weight.status, weight.sentence)
        return
    ways = [(_tuned_advice(op, outer), tuned)]
    many = _many_calls(session, alike, op, outer)
    if stateful:
        ways += _in_processes(session, op) if outer is None else []
        ways.insert(0 if waits_first(op) else len(ways), many)
    for place, (advice, edit) in enumerate(ways):
        waiting = edit.id == many[1].id
        calls = WAITING_CALLS if waiting else cpus(session)
        yield finding(
            "informative" if place else "fail",
            advice,
            speedup_at_most=parallel(session, costs, calls, on_cpu=not waiting),
            edit=edit,
        )


def tuned_calls(
    alike: Sequence[Operation], op: Operation, rule: str, caveat: str | None = None
) -> Edit:
    """Return the edit by which TensorFlow chooses how many calls of the map, and of those of the
    same line, run at once."""
    label = f"num_parallel_calls=AUTOTUNE on the {_named(alike, op)}"
    return Edit(f"{rule}:{op.id}", label, _calls(alike, AUTOTUNE), caveat=caveat)


def _calls(alike: Sequence[Operation], count: int) -> tuple[Change, ...]:
    return tuple(SetParameters(one.id, {"num_parallel_calls": count}) for one in alike)


def _named(alike: Sequence[Operation], op: Operation) -> str:
    name = place_name(op)
    return name.replace("map at", f"{len(alike)} maps at") if alike[1:] else name


def _many_calls(
    session: Session, alike: Sequence[Operation], op: Operation, outer: Operation | None
) -> _Way:
    """Return calls of a fixed number, and as many threads to wait on where there are fewer."""
    edit = PARALLEL_MAP.edit(
        f"{op.id}:{WAITING_CALLS}",
        f"{WAITING_CALLS} parallel calls on the {_named(alike, op)}",
        *_calls(alike, WAITING_CALLS),
        caveat=_where_measured(outer),
    )
    give = f"Give {call_name(op)} `num_parallel_calls={WAITING_CALLS}`"
    if _lacks_threads(session, op):
        give, edit = f"{give}, with {ON_THREADS}", on_threads(edit)
    return f"{give}.{call_times(op)}", edit


def processes_for(session: Session, op: Operation, calls: float = 1.0) -> int | None:
    """Return how many processes may call its Python, of which one call takes so many's time.

    None where a call is short, takes tensors, or changes what others see.
    """
    times, function, count = python_calls(op), op.function, int(cpus(session))
    if times is None or function is None or function.side_effect or count < 2:
        return None
    if _is_serial(op) and waits_first(op):
        return None  # of calls at once each waits for the GIL, so that their waits say nothing
    if set(uses(function, PYTHON_OPERATIONS)) != {"PyFunc"}:
        return None
    long = calls * times.cpu_ms / times.per_step >= COMPUTES_FOR.value
    return min(count, MOST_PROCESSES) if long else None


def _in_processes(session: Session, op: Operation) -> list[_Way]:
    count = processes_for(session, op)
    if count is None:
        return []
    edit = PARALLEL_MAP.edit(
        f"{op.id}:processes",
        f"{count} processes for the Python of the {place_name(op)}",
        Replace(op.id, IN_PROCESSES, {"processes": count}),
        check="equal",
    )
    have = f"Have processes call the Python of {call_name(op)}, one call in each."
    return [(f"{have}{call_times(op)}", edit)]


def on_threads(edit: Edit, count: int = WAITING_CALLS) -> Edit:
    """Return the edit with a pool of so many threads, as a call that waits keeps its thread."""
    pool = SetOptions({"threading.private_threadpool_size": count})
    label = f"{edit.label}, on {count} threads"
    return replace(edit, label=label, changes=(*edit.changes, pool))


def _lacks_threads(session: Session, op: Operation) -> bool:
    pool = pool_size(session, op)
    return pool is not None and pool < WAITING_CALLS


def _where_measured(outer: Operation | None) -> str | None:
    return f"Measured in its present place, not after {call_name(outer)}." if outer else None


def _tuned_advice(op: Operation, outer: Operation | None) -> str:
    advice = f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`"
    if outer is not None:
        advice += f", or move it after {call_name(outer)}."
    elif op.function is not None and op.function.stateful:
        advice += (
            ": TensorFlow keeps a map serial whose function calls Python, looks up in a table, "
            "reads a variable or draws random numbers."
        )
    else:
        advice += "."
    if draws_random(op.function):
        advice += " Use tf.random.stateless_* with a seed for each element to keep runs repeatable."
    return f"{advice}{call_times(op)}"


def settled(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with what trials showed of ways to call a map, one advice for each map.

    The fastest way that was confirmed stays. Else a way that was tried takes the place of one that
    was not. Where Python was tried in parallel in every way and none helps, a finding says so and
    what remains to be done; it never stands next to a confirmed trial of processes.
    """
    found: list[Finding] = []
    by_map: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        if one.rule in (PARALLEL_MAP.id, EACH_ROW) and one.edit is not None and one.op_id:
            by_map.setdefault((one.rule, one.op_id), []).append(one)
    in_processes = {
        one.op_id for one in findings if one.trial.state == "confirmed" and _is_in_processes(one)
    }
    for one in findings:
        ways = by_map.get((one.rule, one.op_id or ""), []) if one.edit is not None else []
        if not ways:
            found.append(one)
        elif one is ways[0]:
            found += _one_advice(session, ways, one.op_id in in_processes)
    return found


def _one_advice(session: Session, ways: list[Finding], in_processes_helps: bool) -> list[Finding]:
    confirmed = [one for one in ways if one.trial.state == "confirmed"]
    op = session.operation(ways[0].op_id)
    timed = ((one.edit, one.trial.speedup) for one in ways)
    shown = [f"{edit.label}: {speedup:.3g}x" for edit, speedup in timed if edit and speedup]
    tried = {"also_tried": "; ".join(shown)} if shown else {}
    if confirmed:
        together = session.combined.findings if session.combined is not None else []
        # What was tried on top of others has another speed-up than what was tried alone.
        chosen = [one for one in confirmed if one.edit is not None and one.edit.id in together]
        best = max(chosen or confirmed, key=lambda one: one.trial.speedup or 1.0)
        evidence = {**best.evidence, **tried}
        return [best.but(status="fail", severity=PARALLEL_MAP.severity, evidence=evidence)]
    refuted = all(one.trial.state == "refuted" and one.rule == PARALLEL_MAP.id for one in ways)
    known = in_processes_helps or any(_is_in_processes(one) for one in ways)
    if not refuted or known or op is None or not calls_python(op):
        return [one for one in ways if one.trial.state != "not_tried"] or ways
    in_processes = PARALLEL_MAP.finding(
        "fail",
        f"Call the function of {call_name(op)} in processes (a `concurrent.futures` "
        "ProcessPoolExecutor behind a `tf.numpy_function`), or rewrite it: more parallel calls did "
        "not help (for Python that computes, the GIL is the usual reason)."
        f"{call_times(op)}{hottest_line_sentence(session)}",
        op=op,
        title="Call the function in processes, or rewrite it",
        evidence={**ways[0].evidence, **tried},
        untried="Pipediag does not start processes that would run the script again.",
        speedup_at_most=parallel(session, op, cpus(session), on_cpu=True),
    )
    return [in_processes, ways[0]]


def _is_in_processes(finding: Finding) -> bool:
    changes = finding.edit.changes if finding.edit is not None else ()
    return any(isinstance(one, Replace) and one.kind == IN_PROCESSES for one in changes)


# Optimisations of tf.data's own that are switched off

DISABLED_DEFAULTS = pipeline_rule(
    id="tf-data-defaults",
    title="Switch tf.data's own optimisations back on",
    why="With its defaults on, tf.data runs stateless maps in parallel, appends a prefetch and "
    "tunes both. In debug mode, functions run eagerly, one element at a time.",
    fix="Remove the option, or set it to True. More threads then run during the training step; "
    "without debug mode, breakpoints in mapped functions no longer work.",
    needs=("loop", "breakdown"),
    thresholds=(INPUT_WAIT,),
    untried="Debug mode applies to the whole process and can't be switched off within it.",
)


@DISABLED_DEFAULTS.found_by
def _check_disabled_defaults(session: Session) -> Iterator[Finding]:
    written, off, weight = operations(session), {}, weigh_input(session)
    if session.environment.tf_data_debug_mode:
        yield DISABLED_DEFAULTS.weighed(
            weight,
            "Remove `tf.data.experimental.enable_debug_mode()`. Until then, the findings about "
            "the pipeline describe debug mode.",
            title="Switch tf.data's debug mode off",
        )
    for given in (option(session.pipeline, name) for name in DEFAULT_SWITCHES):
        if given is not None and given[1] is False:
            key = given[0].removeprefix("options.").removeprefix("experimental_")
            off[key] = f"{given[0]} = False"
    if session.pipeline is not None and not session.pipeline.autotune_enabled:
        off["autotune.enabled"] = "options.autotune.enabled = False"
    if not written or not off:
        return
    label = f"{next(iter(off))} = True" if len(off) == 1 else "tf.data's defaults switched back on"
    edit = Edit(DISABLED_DEFAULTS.id, label, (SetOptions(dict.fromkeys(off, True)),))
    yield DISABLED_DEFAULTS.weighed(
        weight,
        f"Remove `{'`, `'.join(off.values())}`.",
        op=next(iter(operations(session, "with_options")), written[-1]),
        evidence={"switched_off": ", ".join(off.values())},
        edit=edit,
    )
