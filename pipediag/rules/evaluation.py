"""Evaluation and prediction that take a relevant part of the run, and what their data lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    changes_something,
    condition_of_cache,
    differs_by_pass,
    only_looks_up,
    place_name,
    prefetch_switched_off,
    upstream_of,
)
from pipediag.facts.run import faster_evaluation
from pipediag.rules.caching import FILL_S, LEAST_BATCHES, fits_in_memory
from pipediag.rules.maps import is_serial_and_stateful
from pipediag.rules.relevance import THRESHOLDS, weigh_rows
from pipediag.rules.rule import Rule
from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    CompileCall,
    Edit,
    Insert,
    PredictOnBatch,
    SetParameters,
)
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.recording import Prediction
from pipediag.tensorflow_names import BATCHING, CACHES, KEEPS_ELEMENTS, READERS, RUNS_A_FUNCTION
from pipediag.vocabulary import EffectOnResults

_Cure = Callable[..., Finding]
OFTEN = Threshold("how often one place evaluates", 3.0, "times", "own choice: fewer are normal")
EVERY = 5
"""Evaluations of which one is kept, in what is said of fewer. Own choice."""
COSTLY_EVALUATION = Rule(
    id="costly-evaluation",
    title="Evaluate less often, on less data, or in larger batches",
    why="Few decisions need an evaluation after every epoch, or on all of the data.",
    fix="Evaluate every few epochs (`validation_freq`) or on a part (`validation_steps`), in "
    "larger batches. EarlyStopping and ReduceLROnPlateau then see fewer values. Where its steps "
    "wait for data, give its pipeline a cache, parallel calls, or a prefetch.",
    needs=("loop", "run"),
    thresholds=(OFTEN, INPUT_WAIT, *THRESHOLDS),
    untried="A trial leaves out no evaluation: only you know how often you need its result.",
    tried_when_informing=True,
)


@COSTLY_EVALUATION.found_by
def check_costly_evaluation(session: Session) -> Iterator[Finding]:
    """Yield for each place that evaluates a finding on how often, and those on its data."""
    run = session.run
    assert run is not None
    cheap = {
        (one.file, one.line)
        for one, _ in small_predictions(session)
        if 2.0 * sum(one.other_ms) < sum(one.own_ms)
    }
    rows = [row for row in run.parts if row.part == "evaluation" and row.what is not None]
    rows = [row for row in rows if (row.file, row.line) not in cheap]
    for row in sorted(rows, key=lambda row: -row.seconds):
        loop, count = loop_at(session, row), row.count
        if loop is not None and loop.kind != "keras" and row.basis == "measured":
            # By its iterators, as its wait is a stretch of its own.
            count = loop.iterators
        if run.scope != "run":
            count = None
        yield _how_often(session, run, row, count)
        yield from _on_its_data(session, run, row, count)


def _how_often(session: Session, run: Run, row: RunPart, count: int | None) -> Finding:
    loop, diagnosed = loop_at(session, row), session.diagnosed_loop()
    assert diagnosed is not None
    seldom = count is not None and count < OFTEN.value
    # Where it comes often, every fifth has to remain, or one.
    left = 0.0 if seldom or count is None else max(1, count // EVERY) / count
    weight = weigh_rows(run, [row], row.seconds * (1.0 - left))
    # The validation within the `fit` that was diagnosed.
    validates = (row.file, row.line) == (diagnosed.file, diagnosed.line)
    keras = diagnosed.keras if validates and diagnosed.kind == "keras" else None
    watching = keras.deciding_callbacks if keras is not None else []
    size = f" of {loop.batch_size}" if loop is not None and loop.batch_size is not None else ""
    status = "informative" if weight.status == "fail" and seldom else weight.status
    names = " and ".join(f"`{name}`" for name in watching)
    advice = (
        "Evaluate every few epochs, or on a part of the data (`validation_freq`, "
        f"`validation_steps`). Its batches{size} can be larger, as no gradients are kept."
    )
    if seldom:
        advice = (
            f"It comes {'once' if count == 1 else f'{count} times'}, as a run may need. {advice}"
        )
    elif watching:
        advice += f" {names} then counts fewer values, so give it a smaller `patience`."
    return COSTLY_EVALUATION.finding(
        status,
        weight.before(advice),
        place=(row.file, row.line),
        weight=weight,
        evidence={"times": count},
        effect="changes a hyper-parameter" if watching else None,
        condition="if every fifth evaluation tells you enough",
        part="evaluation",
    )


# Its data


def _on_its_data(session: Session, run: Run, row: RunPart, count: int | None) -> Iterator[Finding]:
    """Yield what would end, or shorten, what the evaluation there waits for, at its own line."""
    loop = loop_at(session, row)
    waits = wait_percent(loop) if loop is not None and loop.pipeline is not None else None
    if loop is None or waits is None or waits < INPUT_WAIT.value:
        return

    def cure(advice: str, saved_percent: float, **given: Any) -> Finding:
        weight = weigh_rows(run, [row], row.seconds * saved_percent / 100.0)
        return COSTLY_EVALUATION.finding(
            weight.status,
            weight.before(f"{advice}: its steps wait for input {waits:.0f} % of their time."),
            weight=weight,
            evidence={"times": count, "input_wait_percent_of_evaluation": waits},
            part="evaluation",
            **given,
        )

    yield from _cached(session, loop, waits, count, cure)
    yield from _in_parallel(session, loop, waits, cure)
    yield from _prefetched(session, loop, cure)


def _cached(
    session: Session, loop: Loop, waits: float, count: int | None, cure: _Cure
) -> Iterator[Finding]:
    pipeline = loop.pipeline
    assert pipeline is not None
    work = repeated_work(pipeline)
    place = cache_place(pipeline, work) if work is not None else None
    held = held_bytes(place) if place is not None else None
    # One evaluation that is the only one fills a cache for none.
    if place is None or count == 1 or (held is not None and not fits_in_memory(session, held)):
        return
    condition = condition_of_cache(pipeline.ops, place, "evaluation")
    effect: EffectOnResults = "same results"
    if condition is not None:
        effect = "not known"
    elif any(op.kind == "shuffle" for op in upstream_of(pipeline.ops, place)):
        effect = "same up to order or rounding"
    changes = any(map(changes_something, [place, *upstream_of(pipeline.ops, place)]))
    only = "" if condition is None else f", but only {condition}"
    yield cure(
        f"Put `.cache()` after {call_name(place)}{only}",
        waits * (1.0 if count is None else 1.0 - 1.0 / count),
        op=work,
        title="Cache what is evaluated on",
        edit=None if changes else _kept(loop, pipeline, place),
        effect=effect,
        condition=condition,
        untried="It calls Python with side effects, which a cache would end."
        if changes
        else "How many elements a cache of it would hold is not known.",
    )


def _in_parallel(session: Session, loop: Loop, waits: float, cure: _Cure) -> Iterator[Finding]:
    for op in loop.pipeline.ops if loop.pipeline is not None else []:
        if op.kind != "map" or op.made_by_framework or not is_serial_and_stateful(op):
            continue
        effect: EffectOnResults = "same up to order or rounding"
        if calls_python(op):
            effect = "not known"
        elif only_looks_up(op.function):
            effect = "same results"
        label = f"num_parallel_calls=AUTOTUNE on the {place_name(op)}"
        change = SetParameters(op.id, {"num_parallel_calls": AUTOTUNE})
        yield cure(
            f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`",
            # At most, all of the wait is its own and is divided.
            waits * (1.0 - 1.0 / max(1.0, cpus(session))),
            op=op,
            title="Run the `map` of the evaluation in parallel",
            edit=_edit(loop, f"parallel:{op.id}", label, change),
            effect=effect,
        )


def _prefetched(session: Session, loop: Loop, cure: _Cure) -> Iterator[Finding]:
    ops, switch = loop.pipeline.ops if loop.pipeline else [], None
    written = [op for op in ops if not op.made_by_framework and op.kind != "with_options"]
    if loop.pipeline is not None and not session.environment.tf_data_debug_mode:
        switch = prefetch_switched_off(session, loop.pipeline)
    if written and switch and written[-1].kind != "prefetch" and loop.evaluation is not None:
        step_ms, rest_ms = loop.evaluation.step_ms, loop.evaluation.consumer_ms or 0.0
        yield cure(
            f"End with `.prefetch(tf.data.AUTOTUNE)` after {call_name(written[-1])}, as "
            f"`{switch}` keeps TensorFlow from appending one",
            100.0 * (1.0 - max(rest_ms, step_ms - rest_ms) / step_ms),
            op=written[-1],
            title="Prefetch what is evaluated on",
            untried="A prefetch works beside steps, and nothing is evaluated for a trial.",
        )


def _kept(loop: Loop, pipeline: Pipeline, place: Operation) -> Edit | None:
    """Return a cache of what two seconds make, as the whole of it would be read alike."""
    a_batch, count = elements_of_a_batch(pipeline, place), place.cardinality
    if a_batch is None or loop.evaluation is None:
        return None
    batches = max(FILL_S * 1000.0 / loop.evaluation.step_ms, LEAST_BATCHES)
    wanted = math.ceil(batches * a_batch)
    elements = wanted if count is None or count < 0 else max(1, min(wanted, count))
    change = Insert(place.id, "cache", {"elements": elements})
    edit = _edit(loop, place.id, f"cache after the {place_name(place)}", change)
    return replace(edit, caveat="Measured once the cache is full.")


def _edit(loop: Loop, id: str, label: str, change: Change) -> Edit:
    return Edit(
        f"{COSTLY_EVALUATION.id}:{id}", f"{label}, for the evaluation", (change,), loop_id=loop.id
    )


SMALL_PREDICT = Rule(
    id="small-predict",
    title="Call `predict_on_batch` for small batches",
    why="`predict` makes a dataset and an iterator in each call: for 2,000 rows it took 99 ms, of "
    "which the model took 0.8 ms.",
    fix="Call `predict_on_batch(x)` instead of `predict(x)`; better still, predict all rows in one "
    "call, if they fit in memory.",
    needs=("run",),
    thresholds=THRESHOLDS,
    untried="Both calls are timed where the script calls `predict`, in a run with trials.",
)


@SMALL_PREDICT.found_by
def check_small_predict(session: Session) -> Iterator[Finding]:
    """Yield a finding on each line whose calls were timed and take a part of the run."""
    assert session.run is not None
    for timed, rows in small_predictions(session):
        count, name, line = len(timed.own_ms), Path(timed.file).name, timed.line
        calls_ms, batches_ms = sum(timed.own_ms), sum(timed.other_ms)
        taken_s = sum(row.seconds for row in rows)
        weight = weigh_rows(session.run, rows, taken_s * max(0.0, 1.0 - batches_ms / calls_ms))
        advice = (
            f"Call `predict_on_batch(x)` instead of `predict(x, ...)` at {name}:{line}, with the "
            "same results. One call for all rows saves more."
        )
        yield SMALL_PREDICT.finding(
            weight.status,
            weight.before(advice),
            place=(timed.file, line),
            weight=weight,
            evidence={
                "predict_ms": calls_ms / count,
                "predict_on_batch_ms": batches_ms / count,
                "rows": timed.rows,
            },
            edit=Edit(
                id=f"{SMALL_PREDICT.id}:{name}:{line}",
                label=f"predict_on_batch in place of predict at {name}:{line}",
                changes=(PredictOnBatch(timed.file, line),),
            ),
            part="evaluation",
        )


EAGER_EVALUATION = Rule(
    id="eager-evaluation",
    title="Call the model through a `tf.function`",
    why="A model that is called eagerly starts each of its operations from Python.",
    fix="Put `@tf.function(reduce_retracing=True)` on a function that calls the model, and call "
    "that one for each batch. What then happens in Python with its results stays as it is.",
    needs=("run",),
    thresholds=THRESHOLDS,
    effect="same up to order or rounding",
    untried="Both calls are timed where the script calls the model, in a run with trials.",
)


@EAGER_EVALUATION.found_by
def check_eager_evaluation(session: Session) -> Iterator[Finding]:
    """Yield a finding on each line that calls a model eagerly on batches of an evaluation."""
    assert session.run is not None
    for timed in session.predictions:
        loop = next((one for one in session.loops if one.id == timed.loop_id), None)
        if timed.model is None or loop is None or not timed.is_timed:
            continue
        place = (loop.file, loop.line)
        rows = [one for one in session.run.parts if one.part == "evaluation"]
        rows = [one for one in rows if (one.file, one.line) == place]
        count, name = len(timed.own_ms), Path(timed.file).name
        own_ms, other_ms = sum(timed.own_ms) / count, sum(timed.other_ms) / count
        taken_s = sum(row.seconds for row in rows)
        saved = 1.0 - 1.0 / faster_evaluation(loop, timed, own_ms, other_ms)
        weight = weigh_rows(session.run, rows, taken_s * max(0.0, saved))
        advice = (
            f"Call `{timed.model}` through a `tf.function` at {name}:{timed.line}, with the same "
            f"results up to rounding: {other_ms:.1f} ms instead of {own_ms:.1f} ms a batch."
        )
        change = CompileCall(timed.file, timed.line, timed.model)
        yield EAGER_EVALUATION.finding(
            weight.status,
            weight.before(advice),
            place=(timed.file, timed.line),
            weight=weight,
            evidence={"eager_ms": own_ms, "tf_function_ms": other_ms, "rows": timed.rows},
            edit=Edit(
                id=f"{EAGER_EVALUATION.id}:{name}:{timed.line}",
                label=f"`{timed.model}` as a tf.function at {name}:{timed.line}",
                changes=(change,),
                loop_id=loop.id,
            ),
            part="evaluation",
        )


_PASSED_ON = ("prefetch", "with_options")
"""After which nothing need be cached that can be cached before them."""
_ORDERING = ("repeat", "shuffle")
"""After which a cache never ends, or freezes what it holds."""


def small_predictions(session: Session) -> Iterator[tuple[Prediction, list[RunPart]]]:
    """Yield the lines whose calls of `predict` were timed, with their rows of the ledger."""
    parts = session.run.parts if session.run is not None else []
    for one in session.predictions:
        rows = [
            row
            for row in parts
            if one.model is None
            and row.part == "evaluation"
            and (row.file, row.line) == (one.file, one.line)
        ]
        if one.is_timed and rows:
            yield one, rows


def loop_at(session: Session, row: RunPart) -> Loop | None:
    """Return the loop that evaluates at that line; a `fit` that validates has two loops there."""
    place = (row.file, row.line)
    return next(
        (one for one in session.loops if (one.file, one.line) == place and one.role != "training"),
        None,
    )


def wait_percent(loop: Loop) -> float | None:
    """Return the share of its steps that waits for input, in percent; None where not known."""
    seen = loop.evaluation
    if seen is None or seen.consumer_ms is None or seen.step_ms <= 0:
        return None
    return 100.0 * (1.0 - min(1.0, seen.consumer_ms / seen.step_ms))


def repeated_work(pipeline: Pipeline) -> Operation | None:
    """Return the last function of the user's, or reading, on the way to the loop.

    A cache after it replaces all above it. None where a cache keeps it, or there is none.
    """
    for op in _chain(pipeline):
        if op.kind in CACHES:
            return None
        if not op.made_by_framework and op.kind in (*RUNS_A_FUNCTION, *READERS):
            return op
    return None


def cache_place(pipeline: Pipeline, work: Operation) -> Operation | None:
    """Return the last operation after which a cache keeps this work.

    None where it would keep what differs from pass to pass, or would never end.
    """
    above = [work, *upstream_of(pipeline.ops, work)]
    if any(op.kind == "repeat" or differs_by_pass(op) for op in above):
        return None
    place: Operation | None = None
    for op in _chain(pipeline):
        if op.kind in _ORDERING or differs_by_pass(op):
            place = None
        elif place is None and op.kind not in _PASSED_ON:
            place = op
        if op.id == work.id:
            break
    return place


def elements_of_a_batch(pipeline: Pipeline, place: Operation) -> int | None:
    """Return how many elements of this operation a batch of the loop takes, where known."""
    factor = 1
    for op in _chain(pipeline):
        if op.id == place.id:
            return factor
        if op.kind in BATCHING:
            size = op.parameters.get("batch_size")
            if not isinstance(size, int) or size <= 0:
                return None
            factor *= size
        elif op.kind not in KEEPS_ELEMENTS and op.kind != "take":
            return None
    return None


def held_bytes(place: Operation) -> int | None:
    """Return the size of a cache after it; None where that is not known."""
    count, each = place.cardinality, place.element_bytes
    return count * each if count is not None and count >= 0 and each is not None else None


def _chain(pipeline: Pipeline) -> Iterator[Operation]:
    """Yield operations from the loop up to where several datasets meet, or to the source."""
    path = [op for op in pipeline.ops if op.inside_function_of is None]
    by_id = {op.id: op for op in path}
    op = path[-1] if path else None
    while op is not None:
        yield op
        op = by_id.get(op.parent_ids[0]) if len(op.parent_ids) == 1 else None
