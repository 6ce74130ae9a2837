"""What the pipeline of an evaluation lacks: a cache, parallel calls, a prefetch."""

from __future__ import annotations

import math

from pipediag.facts.amounts import memory_size, share
from pipediag.facts.evaluations import (
    cache_place,
    elements_of_a_batch,
    held_bytes,
    is_end,
    loop_at,
    repeated_work,
    shuffled_above,
    wait_percent,
)
from pipediag.facts.graph_ops import changes_something, condition_of_cache
from pipediag.facts.limits import INPUT_WAIT
from pipediag.facts.machine import available_bytes
from pipediag.facts.pipeline import (
    call_name,
    place_name,
    prefetch_switched_off_in,
    upstream_of,
)
from pipediag.rules.pipeline.cache_size import MEMORY
from pipediag.rules.pipeline.cached_elements import FILL_S, LEAST_BATCHES
from pipediag.rules.run.evaluated_ahead import (
    calls_at_once,
    end_without_prefetch,
    made_ahead,
    serial_maps,
)
from pipediag.rules.run.evaluation_cure import Cure
from pipediag.session.edits import Edit, Insert
from pipediag.session.ledger import RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.vocabulary import EffectOnResults

TITLE = "What is evaluated on is made anew each time, and waited for"
UNKNOWN = " If its data is read or decoded each time, end its pipeline with `.cache()`."
_CHANGES = "It calls Python with side effects, which a cache would end."
_SIZE = "How many elements a cache of it would hold is not known."


def cures_of(session: Session, row: RunPart) -> list[Cure]:
    """What would end, or shorten, what the evaluation there waits for; none where it does not."""
    loop = loop_at(session, row)
    if loop is None or loop.pipeline is None:
        return []
    waits = wait_percent(loop)
    if waits is None or waits < INPUT_WAIT.value:
        return []
    assert loop.evaluation is not None
    cures = [
        _cached(session, loop, loop.pipeline, waits),
        *(calls_at_once(session, loop, op, waits) for op in serial_maps(loop.pipeline)),
        made_ahead(session, loop.pipeline, loop.evaluation, waits),
    ]
    return [cure for cure in cures if cure is not None]


def _cached(session: Session, loop: Loop, pipeline: Pipeline, waits: float) -> Cure | None:
    work = repeated_work(pipeline)
    place = cache_place(pipeline, work) if work is not None else None
    if work is None or place is None or not _fits(session, place):
        return None
    above = [place, *upstream_of(pipeline.ops, place)]
    edit = None if any(map(changes_something, above)) else _edit(loop, pipeline, place)
    return Cure(
        title=TITLE,
        work=work,
        wait_percent=waits,
        saved_percent=waits,
        bytes=held_bytes(place),
        advice=_advice(pipeline, work, place, waits),
        effect=_effect(pipeline, place),
        condition=condition_of_cache(pipeline.ops, place, "evaluation"),
        edit=edit,
        untried=_CHANGES if any(map(changes_something, above)) else None if edit else _SIZE,
        fills_first=True,
    )


def what_its_data_lacks(session: Session, loop: Loop | None) -> str:
    """The rest of what can be said of its pipeline, as sentences, each with a space before it."""
    if loop is None or loop.pipeline is None:
        return UNKNOWN
    pipeline, waits = loop.pipeline, wait_percent(loop)
    if waits is not None and waits < INPUT_WAIT.value:
        return f" Its steps wait for input only {share(waits)} of their time, so leave its data be."
    said = ""
    work = repeated_work(pipeline)
    if work is not None:
        said += _of_a_cache(session, pipeline, work, known=waits is not None)
    if waits is None:
        for op in serial_maps(pipeline):
            said += (
                f" Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow runs it "
                "one call at a time."
            )
    return said + _of_a_prefetch(session, pipeline, known=waits is not None)


def _of_a_cache(session: Session, pipeline: Pipeline, work: Operation, *, known: bool) -> str:
    """Where the wait is known and a cache is possible, a finding of its own says so."""
    place = cache_place(pipeline, work)
    if place is None:
        return ""
    if not _fits(session, place):
        held = memory_size(held_bytes(place) or 0)
        return (
            f" The {call_name(work)} works anew in each evaluation; a cache of that would take "
            f"{held}, more than half of the memory: store the results once."
        )
    if known:
        return ""
    return (
        f" The {call_name(work)} works anew in each evaluation: if that takes time, "
        f"{_where(pipeline, place)}."
    )


def _of_a_prefetch(session: Session, pipeline: Pipeline, *, known: bool) -> str:
    """Only where TensorFlow was kept from appending one."""
    switch, last = prefetch_switched_off_in(session, pipeline), end_without_prefetch(pipeline)
    if switch is None or last is None:
        return ""
    if session.environment.tf_data_debug_mode:
        return f" `{switch}` drops every prefetch of it."
    if known:
        return ""
    return (
        f" `{switch}` keeps TensorFlow from prefetching: end with `.prefetch(tf.data.AUTOTUNE)` "
        f"behind {call_name(last)}."
    )


def _advice(pipeline: Pipeline, work: Operation, place: Operation, waits: float) -> str:
    advice = (
        f"The {call_name(work)} works anew in each evaluation, whose steps wait for input "
        f"{waits:.0f} % of their time: {_where(pipeline, place)}."
    )
    condition = condition_of_cache(pipeline.ops, place, "evaluation")
    return advice if condition is None else f"{advice} Do so only {condition}."


def _where(pipeline: Pipeline, place: Operation) -> str:
    if is_end(pipeline, place):
        return f"end its pipeline with `.cache()`, behind {call_name(place)}"
    return f"put `.cache()` behind {call_name(place)}"


def _fits(session: Session, place: Operation) -> bool:
    held = held_bytes(place)
    return held is None or held <= available_bytes(session) * MEMORY.value / 100.0


def _effect(pipeline: Pipeline, place: Operation) -> EffectOnResults:
    if condition_of_cache(pipeline.ops, place, "evaluation") is not None:
        return "not known"
    shuffled = shuffled_above(pipeline, place)
    return "same up to order or rounding" if shuffled else "same results"


def _edit(loop: Loop, pipeline: Pipeline, place: Operation) -> Edit | None:
    """The cache holds what two seconds make, as the whole of it would be read alike."""
    elements = _elements(loop, pipeline, place)
    if elements is None:
        return None
    return Edit(
        id=f"costly-evaluation:{place.id}",
        label=f"cache behind the {place_name(place)}, for the evaluation",
        changes=(Insert(place.id, "cache", {"elements": elements}),),
        caveat="Measured once the cache is full.",
        loop_id=loop.id,
    )


def _elements(loop: Loop, pipeline: Pipeline, place: Operation) -> int | None:
    assert loop.evaluation is not None
    batches = max(FILL_S * 1000.0 / loop.evaluation.step_ms, LEAST_BATCHES)
    a_batch = elements_of_a_batch(pipeline, place)
    if a_batch is None:
        return None
    wanted = math.ceil(batches * a_batch)
    count = place.cardinality
    return wanted if count is None or count < 0 else max(1, min(wanted, count))
