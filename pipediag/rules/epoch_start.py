"""Waits for the first batch of each epoch: a shuffle that fills, files that are opened again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from pipediag.facts.limits import INPUT_BOUND, Threshold, bound
from pipediag.facts.names import exact_time
from pipediag.facts.pipeline import (
    between,
    call_name,
    delay_ms,
    goes_by_order,
    keeps_elements,
    operations,
    passes_over_data,
    place_name,
    upstream,
)
from pipediag.facts.run import (
    FIRST_BATCHES,
    SHORTEST_EPOCH_S,
    LoopTime,
    comes_again,
    first_batch_percent,
    holds_all,
    long_percent,
    pauses_of_run,
    rows_of_loop,
    starts_s,
    time_of_epochs,
    whole_in_words,
)
from pipediag.facts.run_gain import gain_at_most
from pipediag.rules.reading import files_at_once, read_in_turn
from pipediag.rules.relevance import NOTABLE, THRESHOLDS, weigh_rows
from pipediag.rules.rule import Rule, known, pipeline_rule
from pipediag.rules.shuffling import ENOUGH_MIXED, buffer_size, smaller_buffer, smaller_size
from pipediag.session.edits import Edit, Move, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import READERS, RUNS_A_FUNCTION
from pipediag.vocabulary import RunPartName

Bounds = tuple[float | None, RunGain | None]
"""The most that the loop gains, and the run; None where that is not known."""


def foretold(time: LoopTime | None) -> str:
    """Return what the advice rests on, where no later epoch was seen to wait."""
    seen = time is None or time.ends_seen
    return "" if seen else " The waits of later epochs are inferred, as none was seen."


def without_first_batches(session: Session, time: LoopTime, instead_s: float = 0.0) -> Bounds:
    """Return the bounds without those waits, after which the steps take `instead_s` longer."""
    saved_s = time.first_batches_s - instead_s
    return bound(time.total_s, saved_s), gain_at_most(session.run, max(0.0, saved_s))


FILL_SHARE = Threshold("filling the buffer", 5.0, "% of the loop", "own choice, as for input wait")
FILL_STEPS = Threshold("the same, if the loop's length is unknown", 100.0, "steps", "own choice")
SHUFFLE_PART = Threshold("time to fill it", 30.0, "% of the wait", "own choice: below, it informs")
SLOW_SHUFFLE_FILL = Rule(
    id="epoch-start",
    title="Shuffle before the costly work",
    why="In every epoch, a shuffle yields nothing until its buffer is full. That takes the buffer "
    "size times the time of one element, and nothing is trained meanwhile.",
    fix="Shuffle before the costly map (paths, ids or records instead of decoded elements), but "
    "after a cache. Use a smaller buffer if the shuffle can't be moved.",
    needs=("loop", "pipeline", "steps"),
    thresholds=(FIRST_BATCHES, FILL_SHARE, FILL_STEPS, SHUFFLE_PART),
    effect="same up to order or rounding",
    frees=("input_wait",),
    untried="An operation before it does not keep elements one to one, so it can't be moved.",
)


@SLOW_SHUFFLE_FILL.found_by
def _check_slow_shuffle_fill(session: Session) -> Iterator[Finding]:
    shuffles, fill_ms = operations(session, "shuffle"), known(session.steps).fill_ms
    if not shuffles:
        return
    if fill_ms is None:
        reason = "The wait for the first batch was not measured."
        yield SLOW_SHUFFLE_FILL.finding("inconclusive", reason)
        return
    op = max(shuffles, key=lambda shuffle: _fill_estimate_ms(session, shuffle) or 0.0)
    time = time_of_epochs(session)
    if time is None or time.first_batch_ms is None:
        yield from _by_first_epoch(session, op, fill_ms)
    elif long_percent(session) is not None:
        yield from _by_later_epochs(session, op, time, time.first_batch_ms)


def _by_later_epochs(
    session: Session, op: Operation, time: LoopTime, wait_ms: float
) -> Iterator[Finding]:
    """Judge by the waits of later epochs, in which the pipeline's start has no part."""
    # Where nothing above the shuffle runs on, costs of steps tell nothing of what filled it.
    estimate = wait_ms if holds_all(session, op) else _fill_estimate_ms(session, op)
    # What filled the buffer is done during the steps then. An epoch makes all its elements, and the
    # buffer those that it holds: no less is left to do.
    size, above = buffer_size(op), upstream(session, op)
    count = above[0].cardinality if above else None
    times = max(1.0, count / size) if count and size and size > 0 else 1.0
    work_s = max(0.0, times * time.first_batches_s - time.steps_s)
    bounds = without_first_batches(session, time, work_s)
    yield from _judged(session, op, wait_ms, estimate, first_batch_percent(session), bounds)


def _by_first_epoch(session: Session, op: Operation, fill_ms: float) -> Iterator[Finding]:
    estimate = _fill_estimate_ms(session, op)
    if estimate is None and comes_again(session) == op:
        estimate = fill_ms
    loop, passes, share = known(session.diagnosed_loop()), passes_over_data(session), None
    if loop.projected_s:
        # The first wait also holds the pipeline's start, which later epochs don't repeat.
        repeated_ms = fill_ms if estimate is None else min(fill_ms, estimate)
        fills = passes if passes is not None and passes != math.inf else 1
        share = min(95.0, 100.0 * repeated_ms * fills / (1000.0 * loop.projected_s))
    steps_ms = FILL_STEPS.value * known(session.steps).mean_ms
    if fill_ms >= steps_ms if share is None else share >= FILL_SHARE.value:
        at_most = None if share is None else bound(100.0, share)
        bounds = at_most, gain_at_most(session.run, starts_s(session))
        yield from _judged(session, op, fill_ms, estimate, share, bounds)


def _judged(
    session: Session,
    op: Operation,
    fill_ms: float,
    estimate: float | None,
    share: float | None,
    bounds: Bounds,
) -> Iterator[Finding]:
    """Yield what a long wait before the first batch is: a fill, and with what."""
    costly = [one for one in upstream(session, op) if one.kind in RUNS_A_FUNCTION]
    # TensorFlow leaves out what changes nothing, which has no time then.
    timed = [one for one in costly if delay_ms(session, one) is not None]
    costly = timed or costly
    filling = 1.0 if estimate is None or fill_ms <= 0.0 else min(1.0, estimate / fill_ms)
    # Too small a part of the loop for a trial to show it.
    little = estimate is not None and share is not None and share * filling < FILL_SHARE.value
    if (estimate is None and not costly) or little:
        return
    slowest = max(costly, key=lambda other: delay_ms(session, other) or 0.0, default=None)
    moved = _moved_before(session, op, slowest) if slowest is not None else None
    smaller = None if moved is not None else smaller_buffer(session, op, SLOW_SHUFFLE_FILL.id)
    edit = moved or smaller
    finding = partial(
        SLOW_SHUFFLE_FILL.finding,
        op=op,
        evidence={
            "first_batch_wait_ms": fill_ms,
            "buffer_size": buffer_size(op),
            "estimated_fill_ms": estimate,
            "fill_percent_of_loop": share,
        },
        effect=None if smaller is None else "changes a hyper-parameter",
        condition=None if smaller is None else ENOUGH_MIXED,
        edit=edit,
    )
    name, took = call_name(op), exact_time(fill_ms)
    sooner = "a smaller buffer" if smaller is None else f"a buffer of {smaller_size(session, op)}"
    less = f"give {name} {sooner}, which fills sooner and shuffles less"
    if estimate is None or estimate < fill_ms * SHUFFLE_PART.value / 100.0:
        yield finding(
            "informative" if edit else "inconclusive",
            f"The loop waited {took} for the first batch; filling {name} may be part of that.",
            title="Check whether the first batch waits for the shuffle buffer",
        )
    elif slowest is None:
        yield finding("informative", f"G{less[1:]}: filling it took {took}.")
    else:
        advice = f"Move {name} before {call_name(slowest)}"
        if slowest.kind == "from_generator":
            advice = f"Shuffle indices in the generator of {call_name(slowest)}, and remove {name}"
        advice += f": filling it took {took}.{foretold(time_of_epochs(session))}"
        yield finding(
            "fail",
            advice if smaller is None else f"{advice} Until then, {less}.",
            part="epoch_start",
            speedup_at_most=bounds[0],
            for_run=bounds[1],
        )


def _moved_before(session: Session, op: Operation, slowest: Operation) -> Edit | None:
    path = between(session, slowest, op)
    if path is None or len(slowest.parent_ids) != 1 or not keeps_elements([slowest, *path]):
        return None
    label, move = f"{place_name(op)} moved before the {place_name(slowest)}", slowest.parent_ids[0]
    return SLOW_SHUFFLE_FILL.edit(op, label, Move(op.id, move), check="shape", whole_epoch=True)


def _fill_estimate_ms(session: Session, op: Operation) -> float | None:
    """Return the buffer's size times the delay of one element above the shuffle."""
    buffer, above = buffer_size(op), upstream(session, op)
    delays = [delay_ms(session, other) for other in above]
    per_step = above[0].elements if above else None
    if buffer is None or not per_step or all(delay is None for delay in delays):
        return None
    count = above[0].cardinality
    size = min(buffer, count) if count is not None and count > 0 else buffer
    return size * sum(delay or 0.0 for delay in delays) / per_step


SLOW_EPOCH_START = Rule(
    id="epoch-start",
    title="Start the pipeline once for all epochs",
    why="In each epoch, files are opened again, generators start over, and buffers fill anew.",
    fix="Use one pipeline for all epochs: `repeat()` at its end, before `prefetch`, and "
    "`steps_per_epoch` in `fit`. Load what a generator needs once, outside it.",
    needs=("loop", "run"),
    thresholds=(*THRESHOLDS, INPUT_BOUND),
    effect="same up to order or rounding",
    frees=("input_wait",),
    sees_class_only=True,
    untried="One pipeline for all epochs changes how the script counts them.",
)


@SLOW_EPOCH_START.found_by
def _check_slow_epoch_start(session: Session) -> Iterator[Finding]:
    run, loop = known(session.run), known(session.diagnosed_loop())
    time = time_of_epochs(session)
    if time is None:
        percent = 100.0 * starts_s(session) / run.whole_s if run.whole_s > 0 else 0.0
        if percent >= NOTABLE.value:
            yield SLOW_EPOCH_START.finding(
                "inconclusive",
                f"Waiting for first batches takes {percent:.0f} % of {whole_in_words(run)}. No "
                "end of an epoch was seen, so it is not known whether later epochs wait as well.",
                part="epoch_start",
            )
        return
    written = bool(operations(session))
    advice, hides, given = _cure(session) if written else ("", False, {})
    rows, saved_s = rows_of_loop(session, "epoch_start"), time.first_batches_s
    if hides:
        # The work of an epoch can run in parallel with the steps and what follows them.
        parts: tuple[RunPartName, ...] = ("steps", "evaluation", "epoch_end")
        beside = (row for part in parts for row in rows_of_loop(session, part))
        saved_s = min(saved_s, sum(row.seconds for row in beside))
    share = (session.breakdown or {}).get("input_wait")
    unless = None
    if not written:
        unless = "The wait belongs to a pipeline that the script did not write."
    elif share is not None and share.ci95_percent[0] >= INPUT_BOUND.value:
        unless = "The steps wait for input as well. Fix that first, as it may shorten both waits."
        unless = f"{unless} {advice}"
    yield SLOW_EPOCH_START.weighed(
        weigh_rows(run, rows, saved_s),
        advice,
        unless=unless,
        place=(loop.file, loop.line),
        evidence={"times": sum(row.count or 0 for row in rows) or None},
        part="epoch_start",
        **given,
    )


def _cure(session: Session) -> tuple[str, bool, dict[str, Any]]:
    """Return the advice by what the pipeline is made of, and what else the finding has.

    True between them where the work stays, and only runs in parallel with the rest of an epoch.
    """
    repeated = (
        "Use one pipeline for all epochs: put `.repeat()` before its `prefetch`, and set "
        "`steps_per_epoch` in `fit`, or count the steps in your own loop."
    )
    if generators := operations(session, "from_generator"):
        # One pipeline through all epochs would begin it again just as well.
        advice = (
            f"Load what the generator of {call_name(generators[0])} needs once, outside its "
            "function: the generator starts again in each epoch."
        )
        by_hand = "The loading has to be moved out of the generator's function by hand."
        return advice, False, {"untried": by_hand}
    if shuffles := operations(session, "shuffle"):
        advice = (
            f"{repeated} Or use a smaller buffer, which fills sooner: {call_name(shuffles[0])} "
            "fills it in each epoch."
        )
        edit = smaller_buffer(session, shuffles[0], SLOW_EPOCH_START.id)
        less = {"effect": "changes a hyper-parameter", "condition": ENOUGH_MIXED}
        return advice, False, {} if edit is None else {"edit": edit, **less}
    readers = operations(session, *READERS)
    if not readers:
        return repeated, True, {}
    edits = (
        files_at_once(session, op, SLOW_EPOCH_START.id, whole_epoch=True)
        for op in readers
        if read_in_turn(session, op)
        and goes_by_order(session, session.operation(op.inside_function_of) or op) is None
    )
    again = (
        "The files are opened again in each epoch: open several at once (`interleave(..., "
        "num_parallel_calls=tf.data.AUTOTUNE)`), or `cache()` what fits in memory."
    )
    return f"{repeated} {again}", True, {"edit": next(filter(None, edits), None)}


FREED = Threshold("epochs", SHORTEST_EPOCH_S, "s", "own choice: shorter ones pause briefly")
ITERATOR_PAUSES = pipeline_rule(
    id="iterator-pauses",
    title="Avoid pauses when iterators are freed",
    why="When TensorFlow frees an epoch's iterator, it waits for the thread that tunes it, which "
    "may sleep for up to a minute. A `fit` with epochs of 4 s paused for 0.8 to 2.4 s at 7 of 9 "
    "epoch ends, and at none with tuning off.",
    fix="Set `options.autotune.enabled = False` for the training data: `AUTOTUNE` then means one "
    "call per CPU. Or use one iterator for all epochs: `.repeat()` with `steps_per_epoch`.",
    needs=("loop", "run", "pipeline"),
    thresholds=(FREED,),
    frees=(),
)


@ITERATOR_PAUSES.found_by
def _check_iterator_pauses(session: Session) -> Iterator[Finding]:
    pauses, written = pauses_of_run(session), operations(session)
    if pauses is None or not written:
        return
    label = "options.autotune.enabled = False"
    gain = 1.0 + pauses.epochs * pauses.expected_s / max(pauses.rest_s, 1e-3)
    yield ITERATOR_PAUSES.finding(
        "informative",
        f"Set `{label}` for the training data. Freeing the iterator of an epoch of "
        f"{pauses.life_s:.3g} s may pause training for up to {pauses.longest_s[1]:.2g} s.",
        op=written[-1],
        evidence={
            "epoch_s": pauses.life_s,
            "pause_at_most_s": pauses.longest_s[1],
            "gain_if_half_of_them_pause": gain,
        },
        edit=Edit(ITERATOR_PAUSES.id, label, (SetOptions({"autotune.enabled": False}),)),
        part="epoch_end",
    )
