"""Every edit that fits an operation of the pipeline, or the model, whether a rule speaks or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.facts.graph_ops import (
    changes_something,
    condition_of_cache,
    differs_by_pass,
    only_looks_up,
)
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import (
    last_operation,
    operations,
    option,
    passes_over_data,
    place_name,
    reaches_the_loop,
    reshuffles,
    upstream,
)
from pipediag.rules.model_edits import (
    compiled_by_xla,
    several_steps_a_call,
    shared_calls_effect,
)
from pipediag.rules.pipeline.cached_elements import cache_behind
from pipediag.rules.pipeline.opened_in_turn import opened_at_once, opens_in_turn
from pipediag.rules.pipeline.parallel_map import OVERLAPPING, reason
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetOptions, SetParameters
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
    if any((op.parallelism or 1) > 1 for op in ops) and option(session, "deterministic") is None:
        free = SetOptions({"deterministic": False})
        edit = Edit(f"{search}:deterministic", "deterministic = False", (free,))
        yield Fitting(
            edit,
            "Set `options.deterministic = False`: elements come as they are ready.",
            "same up to order or rounding",
            condition="if the order of the examples does not matter",
        )
    if option(session, "threading.private_threadpool_size") is None:
        threads = THREADS_A_CPU * max(1, round(cpus(session)))
        pool = SetOptions({"threading.private_threadpool_size": threads})
        edit = Edit(f"{search}:threads", f"a pool of {threads} threads of its own", (pool,))
        advice = f"`options.threading.private_threadpool_size = {threads}`."
        yield Fitting(edit, advice, "same results")
