"""Edits that no rule calls for, tried where rules are silent or wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import (
    call_name,
    changes_something,
    condition_of_cache,
    delay_ms,
    differs_by_pass,
    last_operation,
    only_looks_up,
    operations,
    option,
    passes_over_data,
    reaches_the_loop_uncached,
    reshuffles,
    upstream,
)
from pipediag.facts.step import CALL_CLASSES, class_ms
from pipediag.rules.caching import cache_after
from pipediag.rules.model_edits import several_steps_a_call, shared_calls_effect
from pipediag.rules.parallel_maps import OVERLAPPING, reason, tuned_calls
from pipediag.rules.reading import opened_at_once, opens_in_turn
from pipediag.rules.rule import Rule
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import EffectOnResults

SOURCES_AT_ONCE = 4
"""How many are open where one was. Own choice: few enough for any disk and memory."""
THREADS_A_CPU = 4
"""Threads of a pool of the pipeline's own. Own choice: enough for calls that wait to overlap."""
MOST = 6
"""Edits that are tried. Own choice: more would share a minute between so many that none is
decided."""
SEARCH = Rule(
    id="search",
    title="Try a common change",
    why="Rules know causes that were seen before. If none of them fits, trying common changes "
    "costs a minute, and it is also useful to know that none of them helps.",
    fix="Apply what a trial confirms: parallel calls, several sources read at once, a cache, a "
    "prefetch, elements in any order, a separate thread pool, or several steps per call.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(INPUT_BOUND,),
    severity="info",
)
_SAME: EffectOnResults = "same results"
_UP_TO_ORDER: EffectOnResults = "same up to order or rounding"


def search(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """Return what is to be tried; nothing where a rule has an edit on speed for the loop."""
    tried = any(
        finding.status == "fail"
        and not finding.about_results
        and finding.edit is not None
        and finding.edit.loop_id is None
        and finding.effect_on_results != "not safe here"
        for finding in findings
    )
    return [] if tried else beyond(session, findings)


def beyond(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """Return what is to be tried where nothing helps that these findings, of rules, call for."""
    loop = session.diagnosed_loop()
    slow = session.verdict.severity in ("moderate", "high")
    if loop is None or not slow or any(finding.rule == SEARCH.id for finding in findings):
        return []
    known = [finding.edit.changes for finding in findings if finding.edit is not None]
    fitting = [one for one in _fitting(session) if one.edit and one.edit.changes not in known]
    at_loop = {"file": loop.file, "line": loop.line}
    return [one.model_copy(update=at_loop) if one.op_id is None else one for one in fitting[:MOST]]


def after_trials(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings after trials: of a search what it confirmed, and one that counts it."""
    ours = [finding for finding in findings if finding.rule == SEARCH.id]
    others = [finding for finding in findings if finding.rule != SEARCH.id]
    confirmed = [one for one in ours if one.trial.state == "confirmed"]
    tried = [one for one in ours if one.trial.state in ("refuted", "inconclusive") and one.edit]
    if not tried:
        return [*others, *confirmed]
    undecided = any(one.trial.state == "inconclusive" for one in tried)
    outcome = "none was confirmed" if undecided else "none helped"
    changes = "common change" if len(tried) == 1 else "common changes"
    labels = "; ".join(one.edit.label for one in tried if one.edit is not None)
    counted = SEARCH.finding(
        "informative",
        f"Pipediag also tried {len(tried)} {changes}, of which {outcome}: {labels}.",
        title=f"{len(tried)} {changes} tried, {outcome}",
        evidence={"tried": len(tried)},
    )
    return [*others, *confirmed, counted]


def _fitting(session: Session) -> list[Finding]:
    """Return first what could shorten most of the step; of operations, the costliest."""
    ops = [op for op in operations(session) if not op.inside_function_of]
    ops.sort(key=lambda op: -(delay_ms(session, op) or 0.0))
    of_input = [one for op in ops for one in _of_an_operation(session, op)]
    of_input += _of_all(session, ops)
    if session.verdict.bottleneck == "input":
        return of_input
    of_model = list(_of_the_model(session))
    if session.verdict.bottleneck == "overhead":
        return of_model
    waits_more = class_ms(session, ["input_wait"]) > class_ms(session, CALL_CLASSES)
    return [*of_input, *of_model] if waits_more else [*of_model, *of_input]


def _fits(title: str, edit: Edit, advice: str, **given: Any) -> Finding:
    condition = given.get("condition")
    advice = advice if condition is None else f"{advice} Do this only {condition}."
    return SEARCH.finding("informative", advice, title=title, edit=edit, **given)


def _of_the_model(session: Session) -> Iterator[Finding]:
    shared = several_steps_a_call(session, f"{SEARCH.id}:steps_per_execution")
    if shared is not None:
        argument = shared.label.removesuffix(" in compile")
        advice, effect = f"Use `compile({argument})`.", shared_calls_effect(session)
        yield _fits("Run several steps per call", shared, advice, effect=effect)


def _of_an_operation(session: Session, op: Operation) -> Iterator[Finding]:
    name = call_name(op)
    if op.kind == "map" and (op.parallelism or 1) <= 1:
        advice, effect = f"Give {name} `num_parallel_calls=tf.data.AUTOTUNE`.", _SAME
        if op.function is not None and op.function.stateful and not only_looks_up(op.function):
            advice += f" It uses {reason(op.function)}: {OVERLAPPING}."
            effect = _UP_TO_ORDER
        edit = tuned_calls(op, f"{SEARCH.id}:parallel")
        yield _fits("Run `map` in parallel", edit, advice, effect=effect, op=op)
    if opens_in_turn(op):
        id = f"{SEARCH.id}:interleave:{op.id}"
        edit = opened_at_once(op, SOURCES_AT_ONCE, AUTOTUNE, "sources", id, check="shape")
        title = "Read several sources at once"
        yield _fits(title, edit, f"{title}: {edit.label}.", effect=_UP_TO_ORDER, op=op)
    keep = cache_after(session, op, f"{SEARCH.id}:cache") if _could_be_kept(session, op) else None
    if keep is not None:
        condition = condition_of_cache(session.ops, op, "epoch")
        effect = _SAME if condition is None else "not known"
        advice = f"Put `.cache()` directly after {name}."
        given = {"effect": effect, "op": op, "condition": condition}
        yield _fits("Cache the prepared data", keep, advice, **given)


def _could_be_kept(session: Session, op: Operation) -> bool:
    """Return True if its elements, which are the same in every pass, come in several."""
    above, passes = [op, *upstream(session, op)], passes_over_data(session)
    return (
        op.function is not None
        and passes is not None
        and passes > 1
        and reaches_the_loop_uncached(session, op)
        and not any(differs_by_pass(one) or changes_something(one) for one in above)
        and not any(reshuffles(one) for one in above)
    )


def _of_all(session: Session, ops: Sequence[Operation]) -> Iterator[Finding]:
    last = last_operation(session)
    if last is not None and last.kind != "prefetch":
        ahead = Insert(last.id, "prefetch", {"buffer_size": AUTOTUNE})
        edit = SEARCH.edit("prefetch", "prefetch(AUTOTUNE) at the end", ahead, check="equal")
        advice = "End the pipeline with `.prefetch(tf.data.AUTOTUNE)`."
        yield _fits("Prefetch at the end of the pipeline", edit, advice)
    several = any((op.parallelism or 1) > 1 for op in ops)
    if several and option(session.pipeline, "deterministic") is None:
        free = SetOptions({"deterministic": False})
        edit = SEARCH.edit("deterministic", "deterministic = False", free)
        advice = (
            "Set `options.deterministic = False`: elements are then used as soon as they are ready."
        )
        given = {
            "effect": _UP_TO_ORDER,
            "condition": "if the order of the examples does not matter",
        }
        yield _fits("Yield elements in any order", edit, advice, **given)
    if option(session.pipeline, "threading.private_threadpool_size") is None:
        threads = THREADS_A_CPU * max(1, round(cpus(session)))
        pool = SetOptions({"threading.private_threadpool_size": threads})
        edit = SEARCH.edit("threads", f"a separate pool of {threads} threads", pool)
        advice = f"Set `options.threading.private_threadpool_size = {threads}`."
        yield _fits("Give the pipeline its own threads", edit, advice)
