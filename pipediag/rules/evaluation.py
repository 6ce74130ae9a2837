"""Rules about evaluation and prediction that take a relevant part of the run, and their data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from statistics import fmean
from typing import Any

from pipediag.facts.limits import INPUT_WAIT
from pipediag.facts.machine import cpus
from pipediag.facts.names import line_name
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    chain,
    changes_something,
    condition_of_cache,
    differs_by_pass,
    only_looks_up,
    reshuffles,
    upstream_of,
)
from pipediag.facts.run import (
    faster_loop,
    faster_part,
    part_of_calls,
    predicted_in_steps,
    rows_of_loop,
)
from pipediag.rules.caching import cache_of, fits_in_memory, steps_in_time
from pipediag.rules.parallel_maps import is_serial_and_stateful, of_one_line, tuned_calls
from pipediag.rules.relevance import EVERY, OFTEN, THRESHOLDS, weigh_rows
from pipediag.rules.rule import Rule, known
from pipediag.rules.script_work import hot_functions, remedy
from pipediag.session.edits import Check, CompileCall, Edit, PredictOnBatch
from pipediag.session.findings import Finding, also
from pipediag.session.ledger import (
    BETWEEN_ROUNDS,
    FURTHER_ROUNDS,
    VALIDATION,
    Run,
    RunPart,
)
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.recording import Prediction
from pipediag.session.trials import WORTHWHILE
from pipediag.tensorflow_names import BATCHING, CACHES, KEEPS_ELEMENTS, READERS, RUNS_A_FUNCTION
from pipediag.vocabulary import EVALUATING, EffectOnResults, RunPartName

COSTLY_EVALUATION = Rule(
    id="costly-evaluation",
    title="Evaluate less often, on less data, or in larger batches",
    why="Few decisions need an evaluation after every epoch, or on all of the data.",
    fix="Evaluate every few epochs (`validation_freq`), on a part of the data "
    "(`validation_steps`), or in larger batches, or give its data a cache or parallel calls.",
    needs=("loop", "run"),
    thresholds=(OFTEN, INPUT_WAIT, *THRESHOLDS),
    untried="A trial never skips an evaluation: only you know how often you need its result.",
)


@COSTLY_EVALUATION.found_by
def _check_costly_evaluation(session: Session) -> Iterator[Finding]:
    run = known(session.run)
    cheap = {
        (one.file, one.line)
        for one, _ in _small_predictions(session)
        if 2.0 * sum(one.other_ms) < sum(one.own_ms)
    }
    rows = [row for row in run.parts if row.part == "evaluation" and row.what is not None]
    for row in sorted(rows, key=lambda row: -row.seconds):
        if (row.file, row.line) in cheap:
            continue
        # A `fit` that validates has two loops at its line.
        at = [one for one in session.loops if (one.file, one.line) == (row.file, row.line)]
        loop, count = next((one for one in at if one.role != "training"), None), row.count
        if loop is not None and loop.kind != "keras" and row.basis == "measured":
            # Count its iterators, as each wait for one is a stretch of its own.
            count = loop.iterators
        if run.scope != "run" or {BETWEEN_ROUNDS, FURTHER_ROUNDS} & {*run.not_seen}:
            # More evaluations may follow than were seen.
            count = None
        yield _how_often(session, run, row, loop, count)
        yield from _in_its_code(session, run, row)
        if loop is not None:
            yield from _on_its_data(session, run, row, loop, count)


def _how_often(
    session: Session, run: Run, row: RunPart, loop: Loop | None, count: int | None
) -> Finding:
    if count is not None and count < OFTEN.value:
        return COSTLY_EVALUATION.finding("pass")
    diagnosed = known(session.diagnosed_loop())
    # Every fifth evaluation has to remain, and at least one.
    left = 0.0 if count is None else max(1, count // EVERY) / count
    weight = weigh_rows(run, [row], row.seconds * (1.0 - left))
    size = f" of {loop.batch_size}" if loop is not None and loop.batch_size is not None else ""
    in_fit = row.what == VALIDATION
    often, part = (" (`validation_freq`)", " (`validation_steps`)") if in_fit else ("", "")
    many = run.epochs and (count or 0) >= OFTEN.value * run.epochs
    first = "Predict all rows in one call. " if many and "`predict`" in (row.what or "") else ""
    advice = (
        f"{first}Evaluate every few epochs{often}, or on a part of the data{part}. Batches{size} "
        "can be larger here, as no gradients are kept."
    )
    # Callbacks of the diagnosed `fit` that decide by its own validation.
    validates = (row.file, row.line) == (diagnosed.file, diagnosed.line)
    keras = diagnosed.keras if validates else None
    watching = keras.deciding_callbacks if keras is not None else []
    if watching:
        names = " and ".join(f"`{name}`" for name in watching)
        advice += f" Fewer values then reach {names}, so use a smaller `patience`."
    return COSTLY_EVALUATION.weighed(
        weight,
        advice,
        place=(row.file, row.line),
        evidence={"times": count},
        effect="changes a hyper-parameter" if watching else None,
        condition="if every fifth evaluation is enough",
        part="evaluation",
    )


def _in_its_code(session: Session, run: Run, row: RunPart) -> Iterator[Finding]:
    """Yield a finding on the script's own functions that take most of a loop that evaluates."""
    # The wait for input, and calls of the model that were timed, have findings of their own.
    others = [(row.file, row.line), *((one.file, one.line) for one in session.predictions)]
    hot = hot_functions(run, row.what, row.line, others)
    if not hot:
        return
    how = remedy(hot) or "compute with whole arrays, or in one call for many batches"
    if any("update_state(" in one.code for one in hot):
        how = "collect the labels and scores of all batches, and update each metric once"
    percent = sum(one.percent for one in hot)
    yield COSTLY_EVALUATION.weighed(
        weigh_rows(run, [row], row.seconds * percent / 100.0),
        f"{'; '.join(one.words for one in hot)}: {how}.",
        title="Make the evaluation's own code faster",
        place=max(hot, key=lambda one: one.percent).place,
        part="evaluation",
        untried="Pipediag can't rewrite it: `pipediag fix --brief` prints its code with the cost "
        "of each line.",
    )


# Its data


def _on_its_data(
    session: Session, run: Run, row: RunPart, loop: Loop, count: int | None
) -> Iterator[Finding]:
    seen = loop.evaluation
    if loop.pipeline is None or seen is None or seen.consumer_ms is None:
        return
    waits = 100.0 * (1.0 - min(1.0, seen.consumer_ms / seen.step_ms)) if seen.step_ms > 0 else 0.0
    if waits < INPUT_WAIT.value:
        return

    def cure(advice: str, saved_percent: float, **given: Any) -> Finding:
        return COSTLY_EVALUATION.weighed(
            weigh_rows(run, [row], row.seconds * saved_percent / 100.0),
            f"{advice}: its steps wait for input {waits:.0f} % of the time.",
            evidence={"times": count, "input_wait_percent_of_evaluation": waits},
            part="evaluation",
            **given,
        )

    last = next(_chain(loop.pipeline), None)
    held = last.cardinality if last is not None and last.cardinality is not None else -1
    # A cache is discarded where an evaluation leaves a part of its data, and not read after one.
    completes = loop.steps_given is None or 0 <= held <= loop.steps_given
    cache = _cache(session, loop, loop.pipeline) if count != 1 and completes else None
    if cache is not None:
        saved = waits * (1.0 if count is None else 1.0 - 1.0 / count)
        yield cure(saved_percent=saved, title="Cache the evaluation data", **cache)
    maps = (one for one in loop.pipeline.ops if one.kind == "map" and not one.made_by_framework)
    serial = [one for one in maps if is_serial_and_stateful(one)]
    for op in serial:
        alike = of_one_line(loop.pipeline.ops, op)
        if op is not next(one for one in serial if one in alike):
            continue
        same: EffectOnResults = "same up to order or rounding"
        if any(map(calls_python, alike)):
            same = "not known"
        elif all(only_looks_up(one.function) for one in alike if one in serial):
            same = "same results"
        yield cure(
            f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`",
            # Upper bound: all of the wait is this map's, and is divided among the CPUs.
            waits * (1.0 - 1.0 / max(1.0, cpus(session))),
            op=op,
            title="Run the evaluation's `map` in parallel",
            edit=_for(loop, tuned_calls(alike, op, f"{COSTLY_EVALUATION.id}:parallel")),
            effect=same,
        )


def _for(loop: Loop, edit: Edit) -> Edit:
    return replace(edit, label=f"{edit.label}, for the evaluation", loop_id=loop.id)


def _cache(session: Session, loop: Loop, pipeline: Pipeline) -> dict[str, Any] | None:
    """Return the advice to cache what each evaluation makes anew, with its finding's other
    fields."""
    work, place = cached_work(pipeline)
    if place is None:
        return None
    size = _bytes_of_pass(session.run, loop, pipeline, place)
    if size is not None and not fits_in_memory(session, size):
        return None
    above = [place, *upstream_of(pipeline.ops, place)]
    condition = condition_of_cache(pipeline.ops, place, "evaluation")
    effect: EffectOnResults = "same results"
    if condition is not None:
        effect = "not known"
    elif any(map(reshuffles, above[1:])):
        effect = "same up to order or rounding"
    untried = "The number of elements that the cache would hold is not known."
    # Whether each evaluation has the same data is seen in two passes over it.
    edit = _kept(loop, pipeline, place, "repeats" if condition is not None else None)
    if any(map(changes_something, above)):
        untried, edit = "It calls Python with side effects, which a cache would stop.", None
    if size is None:
        condition = also(condition, "all of its data fits in memory")
    only = "" if condition is None else f", but only {condition}"
    return {
        "advice": f"Put `.cache()` after {call_name(place)}{only}",
        "op": work,
        "edit": edit,
        "effect": effect,
        "condition": condition,
        "untried": untried,
    }


def _kept(loop: Loop, pipeline: Pipeline, place: Operation, check: Check | None) -> Edit | None:
    """Return an edit that caches the elements of two seconds: all of them would be read as fast."""
    each = _elements_of_step(pipeline, place)
    if loop.evaluation is None or each is None:
        return None
    elements = steps_in_time(loop.evaluation.step_ms) * each
    if place.cardinality is not None and place.cardinality >= 0:
        elements = max(1, min(elements, place.cardinality))
    return _for(loop, cache_of(place, COSTLY_EVALUATION.id, math.ceil(elements), check=check))


def _elements_of_step(pipeline: Pipeline, place: Operation) -> int | None:
    """Return how many elements of an operation a batch for the loop is made of."""
    sizes = [_taken(op) for op in takewhile(lambda one: one is not place, _chain(pipeline))]
    return math.prod(filter(None, sizes)) if None not in sizes else None


def _taken(op: Operation) -> int | None:
    """Return how many elements it takes for one; None where that is not known."""
    size = op.parameters.get("batch_size") if op.kind in BATCHING else 1
    keeps = op.kind in (*BATCHING, *KEEPS_ELEMENTS, "take")
    return size if keeps and isinstance(size, int) and size > 0 else None


def _bytes_of_pass(
    run: Run | None, loop: Loop, pipeline: Pipeline, place: Operation
) -> float | None:
    """Return what all elements of an evaluation take at an operation, at most; None if not known.

    A batch whose last one may be smaller tells no size: what it is made of does.
    """
    above, rows = list[tuple[Operation, int]](), 1
    for op in chain(pipeline.ops, place):
        above.append((op, rows))
        taken = _taken(op)
        if taken is None:
            break
        rows *= taken
    work = (n for n, (op, _) in enumerate(above) if op.kind in RUNS_A_FUNCTION)
    alike = above[: next(work, len(above)) + 1]
    each = next((n * op.element_bytes for op, n in alike if op.element_bytes is not None), None)
    lengths = ((op.cardinality, n) for op, n in above if op.cardinality is not None)
    count = next((length / n for length, n in lengths if length >= 0), None)
    of_step = _elements_of_step(pipeline, place)
    # The last one may still run, unless it is one of each epoch, and another epoch has begun.
    epochs = (run.epochs_seen if run is not None else None) or 0.0
    goes_on = math.floor(epochs) == loop.iterators < epochs
    passes = loop.iterators if goes_on else loop.iterators - 1
    if count is None and of_step is not None and passes > 0:
        count = of_step * loop.steps / passes
    return None if each is None or count is None else each * count


SMALL_PREDICT = Rule(
    id="small-predict",
    title="Call `predict_on_batch` for small batches",
    why="`predict` creates a dataset and an iterator in each call. For 2,000 rows it took 99 ms, "
    "of which the model took 0.8 ms.",
    fix="Call `predict_on_batch(x)` instead of `predict(x)`. Better still, predict all rows in "
    "one call if they fit in memory.",
    needs=("run",),
    thresholds=THRESHOLDS,
    untried="In a run with trials, both calls are timed where the script calls `predict`.",
)


@SMALL_PREDICT.found_by
def _check_small_predict(session: Session) -> Iterator[Finding]:
    for timed, rows in _small_predictions(session):
        advice = (
            f"Call `predict_on_batch(x)` instead of `predict(x, ...)` at {_line(timed)}, with the "
            "same results. One call for all rows saves more."
        )
        label = f"predict_on_batch instead of predict at {_line(timed)}"
        own_ms, other_ms = fmean(timed.own_ms), fmean(timed.other_ms)
        saved = max(0.0, 1.0 - other_ms / own_ms)
        yield SMALL_PREDICT.weighed(
            weigh_rows(known(session.run), rows, saved * sum(row.seconds for row in rows)),
            advice,
            place=(timed.file, timed.line),
            evidence={"predict_ms": own_ms, "predict_on_batch_ms": other_ms, "rows": timed.rows},
            edit=SMALL_PREDICT.edit(_line(timed), label, PredictOnBatch(timed.file, timed.line)),
            part="evaluation",
        )


def _line(timed: Prediction) -> str:
    return line_name(timed.file, timed.line)


EAGER_EVALUATION = Rule(
    id="eager-evaluation",
    title="Call the model or the metric through a `tf.function`",
    why="A model that is called eagerly, or a metric, starts each of its operations from Python. "
    "An update of `AUC` took 2.7 ms, and 0.6 ms as a `tf.function`.",
    fix="Put `@tf.function(reduce_retracing=True)` on a function that calls the model or the "
    "metric, and call that function for each batch.",
    needs=("run",),
    thresholds=THRESHOLDS,
    effect="same up to order or rounding",
    untried="In a run with trials, both calls are timed where the script calls the model.",
)


@EAGER_EVALUATION.found_by
def _check_eager_evaluation(session: Session) -> Iterator[Finding]:
    run, between_steps = known(session.run), _saved_between_steps(session)
    for timed in session.predictions:
        loop = next((one for one in session.loops if one.id == timed.loop_id), None)
        if timed.model is None or not timed.is_timed:
            continue
        own_ms, other_ms = fmean(timed.own_ms), fmean(timed.other_ms)
        called = _called(timed)
        advice = (
            f"Call `{called}` through a `tf.function` at {_line(timed)}, with the same "
            f"results up to rounding: {other_ms:.1f} ms instead of {own_ms:.1f} ms per batch."
        )
        label = f"`{called}` as a tf.function at {_line(timed)}"
        change = CompileCall(timed.file, timed.line, timed.model, timed.method)
        evaluates = loop is not None and loop.role in EVALUATING
        loop_id = loop.id if loop is not None and evaluates else None
        about = f"{_line(timed)}:{called}"
        part: RunPartName = "evaluation"
        share, beside = other_ms / max(own_ms, 1e-3), 0.0
        if loop is None:
            part = part_of_calls(timed)
            rows = [row for row in run.parts if row.part == part]
            saved = 1.0 - 1.0 / faster_part(run, timed, share)
        elif evaluates:
            rows = _rows_at(session, loop)
            saved = 1.0 - 1.0 / faster_loop(session, loop, timed, share)
        elif about in between_steps:
            # Calls alike matter together.
            rows, part, saved = rows_of_loop(session, "steps"), "steps", between_steps[about]
            beside = sum(between_steps.values()) - saved
        else:
            continue
        taken_s = sum(row.seconds for row in rows)
        weight = weigh_rows(run, rows, taken_s * max(0.0, saved))
        whole = weigh_rows(run, rows, taken_s * max(0.0, saved + beside))
        yield EAGER_EVALUATION.weighed(
            replace(weight, status=whole.status, sentence=whole.sentence),
            advice,
            place=(timed.file, timed.line),
            evidence={"eager_ms": own_ms, "tf_function_ms": other_ms, "rows": timed.rows},
            edit=EAGER_EVALUATION.edit(about, label, change, loop_id=loop_id),
            part=part,
        )


def _called(timed: Prediction) -> str:
    return f"{timed.model}" if timed.method is None else f"{timed.model}.{timed.method}"


def _saved_between_steps(session: Session) -> dict[str, float]:
    """Return, by their lines and names, the shares of the training's steps that its eager calls
    would save, as far as a trial could confirm each."""
    loop, found = session.diagnosed_loop(), dict[str, float]()
    for timed in session.predictions:
        if loop is None or timed.loop_id != loop.id or not timed.is_timed:
            continue
        share = sum(timed.other_ms) / max(sum(timed.own_ms), 1e-3)
        speedup = faster_loop(session, loop, timed, share)
        if timed.model is not None and speedup >= WORTHWHILE:
            found[f"{_line(timed)}:{_called(timed)}"] = 1.0 - 1.0 / speedup
    return found


def _rows_at(session: Session, at: Loop | Prediction) -> list[RunPart]:
    rows = [row for row in known(session.run).parts if row.part == "evaluation"]
    return [row for row in rows if (row.file, row.line) == (at.file, at.line)]


def _small_predictions(session: Session) -> Iterator[tuple[Prediction, list[RunPart]]]:
    in_steps = predicted_in_steps(session)
    for one in session.predictions:
        rows = _rows_at(session, one)
        if one.model is None and one.is_timed and rows and (one.file, one.line) not in in_steps:
            yield one, rows


def cached_work(pipeline: Pipeline) -> tuple[Operation | None, Operation | None]:
    """Return the user's last function, or the reading, on the way to the loop, and the last
    operation after which a cache keeps its work and all above it.

    Both are None where a cache keeps it already; the second is None where a cache would freeze what
    differs from pass to pass, or would never end.
    """
    able: list[Operation] = []
    for op in _chain(pipeline):
        if op.kind in CACHES:
            break
        freezes = op.kind in ("repeat", "shuffle") or differs_by_pass(op)
        able = [] if freezes else [*able, op]
        if not op.made_by_framework and op.kind in (*RUNS_A_FUNCTION, *READERS):
            above = upstream_of(pipeline.ops, op)
            if freezes or any(one.kind == "repeat" or differs_by_pass(one) for one in above):
                return op, None
            places = (one for one in able if one.kind not in ("prefetch", "with_options"))
            return op, next(places, None)
    return None, None


def _chain(pipeline: Pipeline) -> Iterator[Operation]:
    """Yield operations from the loop up to where several datasets meet, or to the source."""
    path = [op for op in pipeline.ops if op.inside_function_of is None]
    return chain(path, path[-1] if path else None)
