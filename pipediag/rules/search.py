"""Edits that no rule calls for, tried where rules are silent or wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import (
    changes_something,
    condition_of_cache,
    delay_ms,
    differs_by_pass,
    last_operation,
    only_looks_up,
    operations,
    option,
    passes_over_data,
    place_name,
    reaches_the_loop,
    reshuffles,
    upstream,
)
from pipediag.facts.step import CALL_CLASSES, class_ms
from pipediag.rules.caching import cache_behind
from pipediag.rules.model_edits import compiled_by_xla, several_steps_a_call, shared_calls_effect
from pipediag.rules.parallel_calls import OVERLAPPING, reason
from pipediag.rules.reading import opened_at_once, opens_in_turn
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import EffectOnResults

SOURCES_AT_ONCE = 4
"""How many are open where one was. Own choice: few enough for any disk and memory."""

THREADS_A_CPU = 4
"""Of a pool of the pipeline's own. Own choice: enough for calls that wait to overlap."""


@dataclass(frozen=True)
class Fitting:
    """An edit, and what it is about."""

    edit: Edit
    advice: str
    effect: EffectOnResults
    op: Operation | None = None
    condition: str | None = None
    """What only the user can decide before it is used."""


def of_the_input(session: Session, search: str) -> list[Fitting]:
    """All that fit the pipeline; `search` is the name that their ids begin with."""
    written = operations(session)
    in_turn = [op for op in written if not op.inside_function_of and not op.removed_by_tensorflow]
    return [
        *(one for op in in_turn for one in _of_an_operation(session, op, search)),
        *_of_all(session, in_turn, search),
    ]


def of_the_model(session: Session, search: str) -> list[Fitting]:
    """All that fit the model, where Keras compiles it."""
    shared = several_steps_a_call(session, f"{search}:steps_per_execution")
    compiled = compiled_by_xla(session, f"{search}:jit_compile")
    found = []
    if shared is not None:
        effect = shared_calls_effect(session)
        found.append(Fitting(shared, f"`compile({_argument(shared)})`.", effect))
    if compiled is not None:
        advice = f"`compile({_argument(compiled)})`."
        found.append(Fitting(compiled, advice, "same up to order or rounding"))
    return found


def _argument(edit: Edit) -> str:
    return edit.label.removesuffix(" in compile")


def _of_an_operation(session: Session, op: Operation, search: str) -> Iterator[Fitting]:
    name = place_name(op)
    if op.kind == "map" and (op.parallelism or 1) <= 1:
        change = SetParameters(op.id, {"num_parallel_calls": AUTOTUNE})
        label = f"num_parallel_calls=AUTOTUNE on the {name}"
        advice = f"Give the {name} `num_parallel_calls=tf.data.AUTOTUNE`."
        effect: EffectOnResults = "same results"
        if op.function is not None and op.function.stateful and not only_looks_up(op.function):
            advice += f" It uses {reason(op.function)}: {OVERLAPPING}."
            effect = "same up to order or rounding"
        edit = Edit(f"{search}:parallel:{op.id}", label, (change,))
        yield Fitting(edit, advice, effect, op)
    if opens_in_turn(op):
        opened, label = opened_at_once(op, SOURCES_AT_ONCE, AUTOTUNE, "sources")
        edit = Edit(f"{search}:interleave:{op.id}", label, (opened,), check="shape")
        advice = f"Read several sources at once: {label}."
        yield Fitting(edit, advice, "same up to order or rounding", op)
    keep = cache_behind(session, op, f"{search}:cache") if _could_be_kept(session, op) else None
    if keep is not None:
        condition = condition_of_cache(
            session.pipeline.ops if session.pipeline else (), op, "epoch"
        )
        effect = "same results" if condition is None else "not known"
        yield Fitting(keep, f"Put `.cache()` directly behind the {name}.", effect, op, condition)


def _could_be_kept(session: Session, op: Operation) -> bool:
    """Whether its elements, which are the same in every pass, come in several."""
    above = [op, *upstream(session, op)]
    passes = passes_over_data(session)
    return (
        op.function is not None
        and passes is not None
        and passes > 1
        and reaches_the_loop(session, op, without=CACHES)
        and not any(differs_by_pass(one) or changes_something(one) for one in above)
        and not any(reshuffles(one) for one in above)
    )


def _of_all(session: Session, ops: list[Operation], search: str) -> Iterator[Fitting]:
    last = last_operation(session)
    if last is not None and last.kind != "prefetch":
        ahead = Insert(last.id, "prefetch", {"buffer_size": AUTOTUNE})
        edit = Edit(f"{search}:prefetch", "prefetch(AUTOTUNE) at the end", (ahead,), check="equal")
        yield Fitting(edit, "End the pipeline with `.prefetch(tf.data.AUTOTUNE)`.", "same results")
    if (
        any((op.parallelism or 1) > 1 for op in ops)
        and option(session.pipeline, "deterministic") is None
    ):
        free = SetOptions({"deterministic": False})
        edit = Edit(f"{search}:deterministic", "deterministic = False", (free,))
        yield Fitting(
            edit,
            "Set `options.deterministic = False`: elements come as they are ready.",
            "same up to order or rounding",
            condition="if the order of the examples does not matter",
        )
    if option(session.pipeline, "threading.private_threadpool_size") is None:
        threads = THREADS_A_CPU * max(1, round(cpus(session)))
        pool = SetOptions({"threading.private_threadpool_size": threads})
        edit = Edit(f"{search}:threads", f"a pool of {threads} threads of its own", (pool,))
        advice = f"`options.threading.private_threadpool_size = {threads}`."
        yield Fitting(edit, advice, "same results")


SEARCH = Meta(
    id="search",
    name="Search",
    title_failed="A change that no rule calls for",
    title_informative="A change that no rule calls for",
    title_passed="A search beyond the rules found nothing",
    why="Rules know causes that were seen before. Where none of them fits, trying what there is to "
    "try costs a minute, and that nothing helps is worth knowing, too.",
    edit="Whatever a trial confirms: parallel calls, several sources at once, a cache, a prefetch, "
    "a free order, threads of its own; for the model several steps in a call, or XLA.",
    cost="That of the change.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(INPUT_BOUND,),
    severity="info",
    effect_on_results="same results",
    tried_when_informing=True,
)

MOST = 6
"""Own choice: more would share a minute between so many that none is decided."""


def search(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """What is to be tried, of the costliest operation first; nothing where a rule has an edit."""
    if any(_has_a_way(finding) for finding in findings):
        return []
    return beyond(session, findings)


def beyond(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """What is to be tried where nothing helps that these findings call for; nothing where they are
    such a search's own already."""
    loop = session.diagnosed_loop()
    if loop is None or session.verdict.severity not in ("moderate", "high"):
        return []
    if any(finding.rule == SEARCH.id for finding in findings):
        return []
    known = [finding.edit.changes for finding in findings if finding.edit is not None]
    fitting = [one for one in _fitting(session) if one.edit.changes not in known]
    place = (loop.file, loop.line)
    return [
        SEARCH.finding(
            "informative",
            one.advice if one.condition is None else f"{one.advice} Only {one.condition}.",
            op=one.op,
            place=place if one.op is None else None,
            effect=one.effect,
            condition=one.condition,
            edit=one.edit,
        )
        for one in fitting[:MOST]
    ]


def told(findings: Sequence[Finding]) -> list[Finding]:
    """What a search came to: what it confirmed, and of all else one finding that counts it."""
    ours = [finding for finding in findings if finding.rule == SEARCH.id]
    if not ours:
        return list(findings)
    confirmed = [one for one in ours if one.trial.state == "confirmed"]
    tried = [one for one in ours if one.trial.state in ("refuted", "inconclusive")]
    others = [finding for finding in findings if finding.rule != SEARCH.id]
    return [*others, *confirmed, *_in_one(tried, also=bool(confirmed))]


def _in_one(tried: Sequence[Finding], *, also: bool) -> list[Finding]:
    """One finding of all that did not help; none where nothing was tried."""
    labels = [one.edit.label for one in tried if one.edit is not None]
    if not labels:
        return []
    count = "One change" if len(labels) == 1 else f"{len(labels)} changes"
    was = "was" if len(labels) == 1 else "were"
    more = " more" if also else ""
    undecided = any(one.trial.state == "inconclusive" for one in tried)
    ending = "none was confirmed" if undecided else "none helps"
    said = f"{count[:1].lower()}{count[1:]}{more} tried, {ending}"
    return [
        SEARCH.finding(
            "informative",
            f"{count}{more} that no rule calls for {was} tried, and {ending}: {'; '.join(labels)}.",
            title=f"A search beyond the rules: {said}",
            evidence={"tried": len(labels)},
        )
    ]


def _fitting(session: Session) -> list[Fitting]:
    """What could shorten most of the step first; of operations, the costliest."""
    of_input = of_the_input(session, SEARCH.id)
    of_input.sort(key=lambda one: -(delay_ms(session, one.op) or 0.0 if one.op else 0.0))
    if session.verdict.bottleneck == "input":
        return of_input
    of_model = of_the_model(session, SEARCH.id)
    if session.verdict.bottleneck == "overhead":
        return of_model
    waits_more = class_ms(session, ["input_wait"]) > class_ms(session, CALL_CLASSES)
    return [*of_input, *of_model] if waits_more else [*of_model, *of_input]


def _has_a_way(finding: Finding) -> bool:
    """Whether its advice on speed can be tried in the training loop, as far as is known before."""
    failed = finding.status == "fail" and not finding.about_results
    if not failed or finding.edit is None or finding.edit.loop_id is not None:
        return False
    return finding.effect_on_results != "not safe here"
