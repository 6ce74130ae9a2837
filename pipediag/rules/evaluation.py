"""Evaluation that takes a relevant part of the run, and what its pipeline lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipediag.facts.evaluations import (
    cache_place,
    elements_of_a_batch,
    held_bytes,
    is_end,
    loop_at,
    repeated_work,
    shuffled_above,
    small_predictions,
    wait_percent,
)
from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.facts.machine import available_bytes, cpus
from pipediag.facts.names import memory_size, share
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    changes_something,
    condition_of_cache,
    only_looks_up,
    place_name,
    prefetch_switched_off,
    upstream_of,
)
from pipediag.rules.caching import FILL_S, LEAST_BATCHES, MEMORY
from pipediag.rules.parallel_calls import is_serial_and_stateful
from pipediag.rules.rule import Meta
from pipediag.rules.run_parts import THRESHOLDS, seen_or_not, weigh
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.ledger import AN_EPOCHS_END, Run, RunPart
from pipediag.session.loops import Evaluation, Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.vocabulary import EffectOnResults


@dataclass(frozen=True)
class Cure:
    """A change of the pipeline that an evaluation reads, and what it would save."""

    title: str
    work: Operation
    """What is waited for."""
    wait_percent: float
    """Of the evaluation's steps."""
    saved_percent: float
    """Of them, at most, or as predicted where there is a speed-up."""
    advice: str
    effect: EffectOnResults
    condition: str | None = None
    """What only the user can decide before it is used."""
    edit: Edit | None = None
    untried: str | None = None
    bytes: int | None = None
    """That a cache would hold."""
    fills_first: bool = False
    """Whether the first evaluation gains nothing."""
    speedup: float | None = None
    """Of the evaluation's steps, where that can be predicted."""


IN_TURN = "What is evaluated on is made one call at a time, and waited for"
NOT_AHEAD = "What is evaluated on is not made ahead, and waited for"
_NOTHING_BESIDE = (
    "A prefetch works beside the steps of an evaluation, and nothing is evaluated for a trial."
)


def serial_maps(pipeline: Pipeline) -> list[Operation]:
    """Maps of the script's that TensorFlow runs one call at a time, as they keep state."""
    written = [op for op in pipeline.ops if op.kind == "map" and not op.made_by_framework]
    return [op for op in written if is_serial_and_stateful(op)]


def calls_at_once(session: Session, loop: Loop, op: Operation, waits: float) -> Cure:
    """The map with parallel calls; at most, all of the wait is its own and its calls divide it."""
    at_once = max(1.0, cpus(session))
    edit = Edit(
        id=f"costly-evaluation:parallel:{op.id}",
        label=f"num_parallel_calls=AUTOTUNE on the {place_name(op)}, for the evaluation",
        changes=(SetParameters(op.id, {"num_parallel_calls": AUTOTUNE}),),
        loop_id=loop.id,
    )
    return Cure(
        title=IN_TURN,
        work=op,
        wait_percent=waits,
        saved_percent=waits * (1.0 - 1.0 / at_once),
        advice=f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow runs it "
        f"one call at a time, and the evaluation's steps wait for input {waits:.0f} % of their "
        "time.",
        effect=_ahead_effect(op),
        edit=edit,
    )


def made_ahead(session: Session, pipeline: Pipeline, seen: Evaluation, waits: float) -> Cure | None:
    """A prefetch, where TensorFlow was kept from appending one."""
    last = end_without_prefetch(pipeline)
    switch = prefetch_switched_off(session, pipeline)
    if last is None or switch is None or session.environment.tf_data_debug_mode:
        return None
    rest_ms = seen.consumer_ms or 0.0
    left_ms = max(rest_ms, seen.step_ms - rest_ms)
    return Cure(
        title=NOT_AHEAD,
        work=last,
        wait_percent=waits,
        saved_percent=100.0 * (1.0 - left_ms / seen.step_ms),
        advice=f"End with `.prefetch(tf.data.AUTOTUNE)` behind {call_name(last)}: `{switch}` keeps "
        "TensorFlow from appending one.",
        effect="same results",
        untried=_NOTHING_BESIDE,
        speedup=round(seen.step_ms / left_ms, 3),
    )


def end_without_prefetch(pipeline: Pipeline) -> Operation | None:
    """The last operation that the script wrote, unless that is a prefetch."""
    written = [op for op in pipeline.ops if not op.made_by_framework]
    last = next((op for op in reversed(written) if op.kind != "with_options"), None)
    return None if last is None or last.kind == "prefetch" else last


def _ahead_effect(op: Operation) -> EffectOnResults:
    if calls_python(op):
        return "not known"
    alike = op.function is not None and only_looks_up(op.function)
    return "same results" if alike else "same up to order or rounding"


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
        advice=_data_advice(pipeline, work, place, waits),
        effect=_data_effect(pipeline, place),
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
    switch, last = prefetch_switched_off(session, pipeline), end_without_prefetch(pipeline)
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


def _data_advice(pipeline: Pipeline, work: Operation, place: Operation, waits: float) -> str:
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


def _data_effect(pipeline: Pipeline, place: Operation) -> EffectOnResults:
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


OFTEN = Threshold(
    "how often one place evaluates",
    3.0,
    "times",
    "own choice: once before and once after a training is what it takes to compare",
)
EVERY = 5
"""Evaluations of which one is kept, in what is said of fewer. Own choice."""
COSTLY_EVALUATION = Meta(
    id="costly-evaluation",
    name="Costly evaluation",
    title_failed="Evaluation takes a relevant part of the run, and comes with every epoch",
    title_passed="Evaluation takes little of the run, or comes seldom",
    why="Nothing is trained while a model is evaluated. Few decisions need it after every epoch, "
    "or "
    "on all of the data.",
    edit="Evaluate every few epochs (`validation_freq`) or on a part (`validation_steps`), in "
    "larger batches (`validation_batch_size`, where `fit` is given arrays). Where its steps wait "
    "for data: end its pipeline with `.cache()` if it is made anew each time, give parallel calls "
    "to a map that TensorFlow keeps serial, and a `prefetch` where TensorFlow is kept from "
    "appending one.",
    cost="Callbacks that watch a validation metric see it less often; where one of them decides "
    "over the training (EarlyStopping, ReduceLROnPlateau), that changes a hyper-parameter, its "
    "patience. A part of the data tells less exactly.",
    needs=("loop", "run"),
    thresholds=(OFTEN, INPUT_WAIT, *THRESHOLDS),
    severity="warn",
    effect_on_results="same results",
    untried="Only you know how often you need to know: to evaluate less changes what you and your "
    "callbacks see, so that is not tried.",
    tried_when_informing=True,
)


def check_costly_evaluation(session: Session) -> list[Finding]:
    """For each place that evaluates for a notable part of the run a finding on how often that is,
    and one on its data where that is made anew each time and waited for."""
    run = session.run
    assert run is not None
    rows = [row for row in run.parts if row.part == "evaluation" and row.what is not None]
    cheap = _cheap_another_way(session)
    rows = [row for row in rows if (row.file, row.line) not in cheap]
    rows.sort(key=lambda row: -row.seconds)
    found: list[Finding] = []
    for row in rows:
        count = _count(row, loop_at(session, row)) if run.scope == "run" else None
        found.append(_finding(session, run, row, count))
        cures = cures_of(session, row)
        found += [_of_its_data(run, row, cure, count) for cure in cures if _comes(cure, count)]
    return [one for one in found if one.status != "pass"] or [
        seen_or_not(COSTLY_EVALUATION, run, "evaluation", AN_EPOCHS_END)
    ]


def _cheap_another_way(session: Session) -> set[tuple[str | None, int | None]]:
    """Return the lines whose evaluation takes less than half with `predict_on_batch`."""
    return {
        (one.prediction.file, one.prediction.line)
        for one in small_predictions(session)
        if 2.0 * sum(one.prediction.on_batch_ms) < sum(one.prediction.predict_ms)
    }


def _comes(cure: Cure, count: int | None) -> bool:
    """Whether any evaluation would gain; one that is the only one fills a cache for none."""
    return count != 1 or not cure.fills_first


def _of_its_data(run: Run, row: RunPart, cure: Cure, count: int | None) -> Finding:
    """At the line of what is waited for; the first evaluation fills a cache."""
    gaining = 1.0 if count is None or not cure.fills_first else 1.0 - 1.0 / count
    saved_s = row.seconds * cure.saved_percent / 100.0 * gaining
    weight = weigh(run, [row], saved_s)
    advice = cure.advice if weight.status == "fail" else f"{weight.sentence} {cure.advice}"
    return COSTLY_EVALUATION.finding(
        weight.status,
        "" if weight.status == "pass" else advice,
        op_id=cure.work.id,
        place=(cure.work.file, cure.work.line),
        title=cure.title,
        evidence={
            **weight.evidence,
            "times": count,
            "evaluation_wait_percent": cure.wait_percent,
            "cache_bytes": cure.bytes,
        },
        effect=cure.effect,
        condition=cure.condition,
        edit=cure.edit,
        untried=cure.untried,
        part="evaluation",
        for_run=weight.for_run,
        speedup_at_most=weight.speedup_at_most,
    )


def _finding(session: Session, run: Run, row: RunPart, count: int | None) -> Finding:
    loop = loop_at(session, row)
    every_fifth = _every_fifth(run, row, count)
    seldom = count is not None and count < OFTEN.value
    # Of what comes often, every fifth has to remain, or one.
    saved_s = row.seconds if seldom or count is None else row.seconds * (1.0 - _left(count))
    weight = weigh(run, [row], saved_s)
    watching = _watching(session, row)
    status, advice = weight.status, _often_advice(session, row, loop, every_fifth, watching)
    if status == "fail" and seldom:
        status = "informative"
        times = "once" if count == 1 else f"{count} times"
        advice = f"{_named(row)} comes {times}, which a run may well need.{_batches(session, row)}"
    elif status != "fail":
        advice = weight.sentence and f"{weight.sentence} {advice}"
    return COSTLY_EVALUATION.finding(
        status,
        advice,
        place=(row.file, row.line),
        evidence={
            **weight.evidence,
            "times": count,
            "batch_size": loop.batch_size if loop is not None else None,
        },
        effect="changes a hyper-parameter" if watching else None,
        condition="if every fifth evaluation tells you enough",
        part="evaluation",
        for_run=weight.for_run,
        speedup_at_most=weight.speedup_at_most,
    )


def _watching(session: Session, row: RunPart) -> list[str]:
    """Callbacks that decide over the training by what its validation says."""
    diagnosed = session.diagnosed_loop()
    if diagnosed is None or diagnosed.keras is None or not _validates(session, row):
        return []
    return diagnosed.keras.deciding_callbacks


def _validates(session: Session, row: RunPart) -> bool:
    """Whether it is the validation within the `fit` that was diagnosed."""
    diagnosed = session.diagnosed_loop()
    assert diagnosed is not None
    return diagnosed.kind == "keras" and (row.file, row.line) == (diagnosed.file, diagnosed.line)


def _count(row: RunPart, loop: Loop | None) -> int | None:
    """How often it came; of a loop's, by its iterators, as its wait is a stretch of its own."""
    if loop is not None and loop.kind != "keras" and row.basis == "measured":
        return loop.iterators
    return row.count


def _every_fifth(run: Run, row: RunPart, count: int | None) -> str:
    """What the run would be with a fifth of the evaluations, by Amdahl's law."""
    if count is None or count < EVERY:
        return ""
    saved_s = row.seconds * (1.0 - _left(count))
    after_s = run.whole_s - saved_s
    return (
        f" Every fifth alone takes {saved_s:.1f} s off the run, which is then "
        f"{run.whole_s / after_s:.2f}x as fast."
    )


def _left(count: int) -> float:
    """The part of the evaluations that remains."""
    return max(1, count // EVERY) / count


def _often_advice(
    session: Session, row: RunPart, loop: Loop | None, every_fifth: str, watching: Sequence[str]
) -> str:
    if _validates(session, row):
        less = (
            f"Validate every few epochs (`validation_freq={EVERY}`), or on a part of the data "
            "(`validation_steps`)"
        )
    else:
        less = f"{_named(row)}: do it every few epochs, or on a part of the data"
    if watching:
        names = " and ".join(f"`{name}`" for name in watching)
        less += f"; {names} then counts fewer values, so give it a smaller `patience`"
    return f"{less}.{every_fifth}{_batches(session, row)}{what_its_data_lacks(session, loop)}"


def _named(row: RunPart) -> str:
    what = row.what or "evaluation"
    return what[:1].upper() + what[1:]


def _batches(session: Session, row: RunPart) -> str:
    loop, by = loop_at(session, row), _by(session, row)
    if loop is None or loop.batch_size is None:
        return f" Larger batches{by} take less time, as no gradients are kept."
    return (
        f" Its batches of {loop.batch_size} can be larger{by}, as no gradients are kept: that "
        "takes less time as long as they are small."
    )


def _by(session: Session, row: RunPart) -> str:
    """Keras' own argument, where its validation makes batches of the arrays that it was given."""
    loop = loop_at(session, row)
    of_arrays = (
        _validates(session, row)
        and loop is not None
        and loop.pipeline is not None
        and bool(loop.pipeline.ops)
        and all(op.made_by_framework for op in loop.pipeline.ops)
        and not any(op.kind == "from_generator" for op in loop.pipeline.ops)
    )
    return " (`validation_batch_size` in `fit`)" if of_arrays else ""
