"""Evaluation and prediction that take a relevant part of the run, and what their data lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pipediag.facts.evaluations import (
    SmallPrediction,
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
from pipediag.facts.machine import cpus
from pipediag.facts.names import share
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
from pipediag.rules.caching import FILL_S, LEAST_BATCHES, fits_in_memory
from pipediag.rules.maps import is_serial_and_stateful
from pipediag.rules.relevance import THRESHOLDS, seen_or_not, weigh_rows
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Edit, Insert, PredictOnBatch, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.ledger import AN_EPOCHS_END, Run, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.vocabulary import EffectOnResults

OFTEN = Threshold(
    "how often one place evaluates", 3.0, "times", "own choice: once before and after is needed"
)
EVERY = 5
"""Evaluations of which one is kept, in what is said of fewer. Own choice."""
COSTLY_EVALUATION = Meta(
    id="costly-evaluation",
    name="Costly evaluation",
    title_failed="Evaluate less often, on less data, or in larger batches",
    title_passed="Evaluation takes little of the run, or comes seldom",
    why="Few decisions need an evaluation after every epoch, or on all of the data.",
    edit="Evaluate every few epochs (`validation_freq`) or on a part (`validation_steps`), in "
    "larger batches. Where its steps wait for data: a cache, parallel calls, or a prefetch.",
    cost="Callbacks see a validation metric less often, which changes the patience of "
    "EarlyStopping and ReduceLROnPlateau. A part of the data tells less exactly.",
    needs=("loop", "run"),
    thresholds=(OFTEN, INPUT_WAIT, *THRESHOLDS),
    untried="Only you know how often you and your callbacks need to know.",
    tried_when_informing=True,
)


def check_costly_evaluation(session: Session) -> list[Finding]:
    """Return for each place that evaluates a finding on how often, and those on its data."""
    run = session.run
    assert run is not None
    cheap = {
        (one.prediction.file, one.prediction.line)
        for one in small_predictions(session)
        if 2.0 * sum(one.prediction.on_batch_ms) < sum(one.prediction.predict_ms)
    }
    rows = [row for row in run.parts if row.part == "evaluation" and row.what is not None]
    rows = [row for row in rows if (row.file, row.line) not in cheap]
    found: list[Finding] = []
    for row in sorted(rows, key=lambda row: -row.seconds):
        count = _count(row, loop_at(session, row)) if run.scope == "run" else None
        found.append(_how_often(session, run, row, count))
        found += _on_its_data(session, run, row, count)
    return [one for one in found if one.status != "pass"] or [
        seen_or_not(COSTLY_EVALUATION, run, "evaluation", AN_EPOCHS_END)
    ]


def _count(row: RunPart, loop: Loop | None) -> int | None:
    """Return how often it came; a loop's by its iterators, as its wait is a stretch of its own."""
    if loop is not None and loop.kind != "keras" and row.basis == "measured":
        return loop.iterators
    return row.count


def _how_often(session: Session, run: Run, row: RunPart, count: int | None) -> Finding:
    loop = loop_at(session, row)
    seldom = count is not None and count < OFTEN.value
    # Where it comes often, every fifth has to remain, or one.
    left = 0.0 if seldom or count is None else max(1, count // EVERY) / count
    weight = weigh_rows(run, [row], row.seconds * (1.0 - left))
    diagnosed = session.diagnosed_loop()
    deciding = diagnosed.keras.deciding_callbacks if diagnosed and diagnosed.keras else []
    watching = deciding if _validates(session, row) else []
    status = weight.status
    advice = weight.before(_fewer(session, row, watching))
    if status == "fail" and seldom:
        status = "informative"
        times = "once" if count == 1 else f"{count} times"
        advice = f"{_named(row)} comes {times}, which a run may well need.{_batches(session, row)}"
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


def _validates(session: Session, row: RunPart) -> bool:
    """Return True if it is the validation within the `fit` that was diagnosed."""
    diagnosed = session.diagnosed_loop()
    assert diagnosed is not None
    return diagnosed.kind == "keras" and (row.file, row.line) == (diagnosed.file, diagnosed.line)


def _named(row: RunPart) -> str:
    what = row.what or "evaluation"
    return what[:1].upper() + what[1:]


def _fewer(session: Session, row: RunPart, watching: list[str]) -> str:
    """Return how to evaluate less, and what else shortens it."""
    less = f"{_named(row)}: do it every few epochs, or on a part of the data"
    if _validates(session, row):
        less = (
            f"Validate every few epochs (`validation_freq={EVERY}`), or on a part of the data "
            "(`validation_steps`)"
        )
    if watching:
        names = " and ".join(f"`{name}`" for name in watching)
        less += f"; {names} then counts fewer values, so give it a smaller `patience`"
    return f"{less}.{_batches(session, row)}{_of_data(loop_at(session, row))}"


def _batches(session: Session, row: RunPart) -> str:
    loop = loop_at(session, row)
    size = f" of {loop.batch_size}" if loop is not None and loop.batch_size is not None else ""
    return f" Its batches{size} can be larger, as no gradients are kept: that takes less time."


# Its data


class _Cure(NamedTuple):
    """A change of the pipeline that an evaluation reads, and what it would save."""

    finding: Callable[..., Finding]
    advice: str
    saved_percent: float
    """Percent of the evaluation's steps that it saves at most."""
    fills_first: bool = False
    """True where the first evaluation gains nothing."""


def _on_its_data(session: Session, run: Run, row: RunPart, count: int | None) -> Iterator[Finding]:
    """Yield what would end, or shorten, what the evaluation there waits for, at its own line."""
    loop = loop_at(session, row)
    waits = wait_percent(loop) if loop is not None and loop.pipeline is not None else None
    if loop is None or loop.pipeline is None or waits is None or waits < INPUT_WAIT.value:
        return
    for cure in _cures(session, loop, loop.pipeline, waits):
        gaining = 1.0 if count is None or not cure.fills_first else 1.0 - 1.0 / count
        weight = weigh_rows(run, [row], row.seconds * cure.saved_percent / 100.0 * gaining)
        # One evaluation that is the only one fills a cache for none.
        if count != 1 or not cure.fills_first:
            yield cure.finding(
                weight.status,
                weight.before(cure.advice),
                evidence={**weight.evidence, "times": count, "evaluation_wait_percent": waits},
                part="evaluation",
                for_run=weight.for_run,
                speedup_at_most=weight.speedup_at_most,
            )


def _cures(session: Session, loop: Loop, pipeline: Pipeline, waits: float) -> Iterator[_Cure]:
    work = repeated_work(pipeline)
    place = cache_place(pipeline, work) if work is not None else None
    held = held_bytes(place) if place is not None else None
    if work is not None and place is not None and (held is None or fits_in_memory(session, held)):
        yield _cached(loop, pipeline, work, place, waits)
    for op in pipeline.ops:
        if op.kind == "map" and not op.made_by_framework and is_serial_and_stateful(op):
            yield _calls_at_once(session, loop, op, waits)
    written = [op for op in pipeline.ops if not op.made_by_framework and op.kind != "with_options"]
    switch = prefetch_switched_off(session, pipeline)
    if not written or switch is None or session.environment.tf_data_debug_mode:
        return
    if written[-1].kind != "prefetch" and loop.evaluation is not None:
        rest_ms = loop.evaluation.consumer_ms or 0.0
        left_ms = max(rest_ms, loop.evaluation.step_ms - rest_ms)
        finding = partial(
            COSTLY_EVALUATION.finding,
            op=written[-1],
            title="Prefetch what is evaluated on",
            untried="A prefetch works beside steps, and nothing is evaluated for a trial.",
        )
        yield _Cure(
            finding,
            f"End with `.prefetch(tf.data.AUTOTUNE)` behind {call_name(written[-1])}: `{switch}` "
            "keeps TensorFlow from appending one.",
            100.0 * (1.0 - left_ms / loop.evaluation.step_ms),
        )


def _cached(
    loop: Loop, pipeline: Pipeline, work: Operation, place: Operation, waits: float
) -> _Cure:
    """Return a cache, of what two seconds make, as the whole of it would be read alike."""
    changes = any(map(changes_something, [place, *upstream_of(pipeline.ops, place)]))
    condition = condition_of_cache(pipeline.ops, place, "evaluation")
    same: EffectOnResults = "same results"
    if condition is not None:
        same = "not known"
    elif shuffled_above(pipeline, place):
        same = "same up to order or rounding"
    a_batch, count, edit = elements_of_a_batch(pipeline, place), place.cardinality, None
    if a_batch is not None and not changes and loop.evaluation is not None:
        batches = max(FILL_S * 1000.0 / loop.evaluation.step_ms, LEAST_BATCHES)
        wanted = math.ceil(batches * a_batch)
        elements = wanted if count is None or count < 0 else max(1, min(wanted, count))
        edit = Edit(
            id=f"{COSTLY_EVALUATION.id}:{place.id}",
            label=f"cache behind the {place_name(place)}, for the evaluation",
            changes=(Insert(place.id, "cache", {"elements": elements}),),
            caveat="Measured once the cache is full.",
            loop_id=loop.id,
        )
    finding = partial(
        COSTLY_EVALUATION.finding,
        op=work,
        title="Cache what is evaluated on",
        effect=same,
        condition=condition,
        edit=edit,
        untried="It calls Python with side effects, which a cache would end."
        if changes
        else "How many elements a cache of it would hold is not known.",
    )
    where = f"put `.cache()` behind {call_name(place)}"
    if is_end(pipeline, place):
        where = f"end its pipeline with `.cache()`, behind {call_name(place)}"
    only = "" if condition is None else f" Do so only {condition}."
    advice = (
        f"The {call_name(work)} works anew in each evaluation, whose steps wait for input "
        f"{waits:.0f} % of their time: {where}.{only}"
    )
    return _Cure(finding, advice, waits, fills_first=True)


def _calls_at_once(session: Session, loop: Loop, op: Operation, waits: float) -> _Cure:
    """Return the map with parallel calls; at most, all of the wait is its own and is divided."""
    effect: EffectOnResults = "same up to order or rounding"
    if calls_python(op):
        effect = "not known"
    elif only_looks_up(op.function):
        effect = "same results"
    finding = partial(
        COSTLY_EVALUATION.finding,
        op=op,
        title="Run more calls at once of the map that is evaluated on",
        effect=effect,
        edit=Edit(
            id=f"{COSTLY_EVALUATION.id}:parallel:{op.id}",
            label=f"num_parallel_calls=AUTOTUNE on the {place_name(op)}, for the evaluation",
            changes=(SetParameters(op.id, {"num_parallel_calls": AUTOTUNE}),),
            loop_id=loop.id,
        ),
    )
    advice = (
        f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow runs it one call "
        f"at a time, and the evaluation's steps wait for input {waits:.0f} % of their time."
    )
    return _Cure(finding, advice, waits * (1.0 - 1.0 / max(1.0, cpus(session))))


def _of_data(loop: Loop | None) -> str:
    """Return what can be said of its data where no wait for it was measured, behind a space."""
    waits = None if loop is None else wait_percent(loop)
    if waits is None:
        return " If its data is read or decoded each time, end its pipeline with `.cache()`."
    if waits < INPUT_WAIT.value:
        return f" Its steps wait for input only {share(waits)} of their time, so leave its data be."
    return ""


# Predictions

SMALL_PREDICT = Meta(
    id="small-predict",
    name="Small predict",
    title_failed="Call `predict_on_batch` for small batches",
    title_passed="No `predict` is called for small batches",
    why="`predict` makes a dataset and an iterator in each call: for 2,000 rows it took 99 ms, of "
    "which the model took 0.8 ms.",
    edit="Call `predict_on_batch(x)` instead of `predict(x)`; better still, predict all rows in "
    "one call.",
    cost="All rows go through the model at once, so they must fit in memory.",
    needs=("run",),
    thresholds=THRESHOLDS,
    untried="It is timed where `predict` is called, while changes are tried.",
)


def check_small_predict(session: Session) -> list[Finding]:
    """Return a finding on each line whose calls were timed and take a part of the run."""
    assert session.run is not None
    found = [_of_predictions(session.run, seen) for seen in small_predictions(session)]
    passed = SMALL_PREDICT.finding("pass", part="evaluation")
    return [one for one in found if one.status != "pass"] or [passed]


def _of_predictions(run: Run, seen: SmallPrediction) -> Finding:
    timed = seen.prediction
    calls_s, batches_s, count = sum(timed.predict_ms), sum(timed.on_batch_ms), len(timed.predict_ms)
    weight = weigh_rows(run, seen.rows, seen.taken_s * max(0.0, 1.0 - batches_s / calls_s))
    name, line = Path(timed.file).name, timed.line
    advice = (
        f"Call `predict_on_batch(x)` instead of `predict(x, ...)` at {name}:{line}: a call for "
        f"{timed.rows:,} rows takes {calls_s / count:.2g} ms, and `predict_on_batch` "
        f"{batches_s / count:.2g} ms with the same results. One call for all rows saves more."
    )
    return SMALL_PREDICT.finding(
        weight.status,
        weight.before(advice),
        place=(timed.file, line),
        evidence={
            **weight.evidence,
            "predict_ms": calls_s / count,
            "predict_on_batch_ms": batches_s / count,
            "rows": timed.rows,
        },
        edit=Edit(
            id=f"{SMALL_PREDICT.id}:{name}:{line}",
            label=f"predict_on_batch in place of predict in line {line}",
            changes=(PredictOnBatch(timed.file, line),),
        ),
        part="evaluation",
        for_run=weight.for_run,
        speedup_at_most=weight.speedup_at_most,
    )
