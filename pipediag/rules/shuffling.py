"""Shuffle buffers: too small to mix, or slow to fill."""

from __future__ import annotations

import math
from functools import partial

from pipediag.facts.limits import Threshold, bound
from pipediag.facts.names import time_taken
from pipediag.facts.pipeline import (
    between,
    call_name,
    delay_ms,
    downstream,
    following_batch,
    framework_call,
    gives_batches_alone,
    keeps_elements,
    operations,
    passes_over_data,
    place_name,
    upstream,
)
from pipediag.facts.run import (
    FIRST_BATCHES,
    comes_again,
    first_batch_percent,
    holds_all,
    later_starts_s,
    long_percent,
    starts_s,
    time_of_epochs,
)
from pipediag.facts.run_gain import gain_at_most
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Move, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain
from pipediag.session.loops import LoopTime
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING, RUNS_A_FUNCTION
from pipediag.vocabulary import Scalar

COVERAGE = Threshold(
    "buffer size", 1.0, "% of the elements", "own choice: sorted data stays sorted below it"
)
SMALL_SHUFFLE = Meta(
    id="small-shuffle",
    name="Small shuffle",
    title_failed="Shuffle with a buffer that mixes the data",
    title_passed="Shuffles mix the data",
    why="An element comes early by no more than the buffer's size, and after a batch whole batches "
    "change places.",
    edit="A larger buffer, before the batch; shuffle file names too.",
    cost="Memory for the buffer's elements, and time to fill it before the first step.",
    needs=("loop", "pipeline"),
    thresholds=(COVERAGE,),
    effect_on_results="same up to order or rounding",
    subject="quality",
    untried="It is about how well the model learns, which a trial of speed can't tell.",
)
_KEEPS_NUMBER = ("map", "shuffle", "prefetch", "cache", "with_options")
_UNKNOWN = "How many elements reach the shuffle is not known, and no epoch of them has ended."


def check_small_shuffle(session: Session) -> list[Finding]:
    """Return a finding on each shuffle."""
    # A helper mixes the names of the files itself before its shuffle does the rest.
    shuffles = [op for op in operations(session, "shuffle") if not op.made_by_framework]
    if not shuffles:
        return [SMALL_SHUFFLE.finding("not-applicable", "The pipeline has no shuffle.")]
    return [_of_size(session, op) for op in shuffles]


def _of_size(session: Session, op: Operation) -> Finding:
    above, buffer = upstream(session, op), op.parameters.get("buffer_size")
    count, at_most = _counts(session, op, above)
    evidence: dict[str, Scalar] = {"buffer_size": buffer, "elements": count}
    finding = partial(SMALL_SHUFFLE.finding, op=op, evidence=evidence)
    if not isinstance(buffer, int) or buffer < 0:
        return finding("inconclusive", "The buffer's size is not known.")
    holds_all_data = at_most is not None and buffer >= at_most
    if holds_all_data or any(other.kind == "shuffle" for other in above):
        return finding("pass")
    problem = _problem(session, op, buffer, count)
    if problem is not None:
        return finding("fail", problem)
    if at_most is None or buffer < at_most * COVERAGE.value / 100.0:
        return finding("not-applicable", _UNKNOWN)
    return finding("pass")


def _problem(session: Session, op: Operation, buffer: int, count: int | None) -> str | None:
    above = upstream(session, op)
    batch = next((other for other in above if other.kind in BATCHING), None)
    if batch is not None and not any(other.kind == "unbatch" for other in above):
        how = f"Move {call_name(op)} above {call_name(batch)}"
        if batch.made_by_framework:
            call = framework_call(batch)
            alone = gives_batches_alone(batch)
            single = (
                f"Put `.unbatch()` behind {call}" if alone else f"Pass `batch_size=None` to {call}"
            )
            how = f"{single}, and put {call_name(op)} and then a `batch` behind it"
        return f"{how}: as it is, whole batches change places and their examples stay together."
    behind = following_batch(session, op)
    size = behind.parameters.get("batch_size") if behind else None
    if isinstance(size, int) and buffer <= size and (count is None or count > size):
        return (
            f"The buffer of {call_name(op)} ({buffer}) is no larger than a batch ({size}): take "
            "several times the batch, or all elements where they fit."
        )
    if count is not None and buffer < count * COVERAGE.value / 100.0:
        return (
            f"The buffer of {call_name(op)} holds {buffer} of {count} elements: make it larger, or "
            "shuffle file names or indices before it."
        )
    return None


def _counts(
    session: Session, op: Operation, above: list[Operation]
) -> tuple[int | None, int | None]:
    """Return how many elements reach the shuffle in one pass, at least and at most.

    Where nothing says it before it runs, as behind an interleave of files, the epochs that were
    seen do: each iterator but the last has gone through one. None where an epoch's examples are
    others than those that are shuffled.
    """
    once = (other for other in above if other.kind != "repeat" and other.cardinality != -1)
    nearest = next(once, None)
    if nearest is not None and nearest.cardinality is not None:
        return nearest.cardinality, nearest.cardinality
    loop, behind = session.diagnosed_loop(), downstream(session, op)
    kept = all(other.kind in (*_KEEPS_NUMBER, *BATCHING) for other in behind)
    if loop is None or loop.batch_size is None or loop.iterators < 2 or not kept:
        return None, None
    if operations(session, "repeat"):
        return None, None
    examples = loop.steps * loop.batch_size
    return examples // loop.iterators, examples // (loop.iterators - 1)


PART = 10
"""The buffer becomes a tenth. Own choice: the fill is then next to nothing of what it was."""
LEAST_BATCHES = 8
"""Batches that it still holds. Own choice: fewer would hardly mix more than one batch does."""
ENOUGH_MIXED = "if the model learns as well from data that is mixed less"


def smaller_size(session: Session, shuffle: Operation) -> int | None:
    """Return a tenth, but some batches and enough to mix the data; None where that is hardly less.

    A buffer holds no more than there is; an endless repeat above it brings more.
    """
    buffer, behind = _buffer(shuffle), following_batch(session, shuffle)
    batch = behind.parameters.get("batch_size") if behind is not None else None
    if buffer is None or buffer <= 0 or not isinstance(batch, int):
        return None
    above = upstream(session, shuffle)
    count = above[0].cardinality or 0 if above else 0
    held = min(buffer, count) if count > 0 else buffer
    enough = math.ceil(count * COVERAGE.value / 100.0)
    size = max(held // PART, LEAST_BATCHES * batch, enough)
    return size if size <= held // 2 else None


def _buffer(shuffle: Operation) -> int | None:
    size = shuffle.buffer_size or shuffle.parameters.get("buffer_size")
    return size if isinstance(size, int) else None


def smaller_buffer(session: Session, shuffle: Operation, rule: str) -> Edit | None:
    """Return a smaller buffer, tried in whole epochs, as steps alone don't show a fill."""
    size = smaller_size(session, shuffle)
    if size is None:
        return None
    return Edit(
        id=f"{rule}:buffer:{shuffle.id}",
        label=f"a buffer of {size} for the {place_name(shuffle)}",
        changes=(SetParameters(shuffle.id, {"buffer_size": size}),),
        check="shape",
        caveat="It counts time; how well the model learns from data that is mixed less is not "
        "measured.",
        whole_epoch=True,
    )


def foretold(time: LoopTime | None) -> str:
    """Return what the advice rests on, where no later epoch was seen to wait."""
    if time is None or time.epoch_ends_seen:
        return ""
    return (
        " No end of an epoch was seen: that later epochs wait as long as the first is inferred "
        "from their shuffle, which fills anew in each."
    )


def without_first_batches(session: Session, time: LoopTime, instead_s: float = 0.0) -> float | None:
    """Return the loop over the loop without those waits, its start included where that is known.

    Waits that no end of an epoch showed are not in what the loop is said to take.

    Args:
        instead_s: what the steps take longer then.
    """
    loop = session.diagnosed_loop()
    projected = loop.projected_s if loop is not None and time.epoch_ends_seen else None
    return bound(projected or time.total_s, time.first_batches_s - instead_s)


def run_without_first_batches(
    session: Session, time: LoopTime, instead_s: float = 0.0
) -> RunGain | None:
    """Return the most that the run gains without them, by its ledger; None if not known.

    The ledger may be of one epoch where the loop's time is of all that were seen, so what the steps
    take longer counts as a part of the waits.
    """
    waits_s = later_starts_s(session)
    if waits_s is None or time.first_batches_s <= 0.0:
        return None
    return gain_at_most(session.run, waits_s * max(0.0, 1.0 - instead_s / time.first_batches_s))


FILL_SHARE = Threshold(
    "time to fill the buffer", 5.0, "% of the training loop", "own choice, as for input wait"
)
FILL_STEPS = Threshold(
    "time to fill it, in a loop of unknown length", 100.0, "steps", "own choice: as good as lost"
)
SHUFFLE_PART = Threshold(
    "part of the wait that filling explains", 30.0, "% of the wait", "own choice: below, it informs"
)
SLOW_SHUFFLE_FILL = Meta(
    id="epoch-start",
    name="Slow shuffle fill",
    title_failed="Shuffle before the costly work, so that the buffer fills at once",
    title_passed="The shuffle buffer fills quickly",
    why="A shuffle hands out nothing until its buffer is full, and it fills anew in each epoch: "
    "buffer size times the time of one element, with nothing trained meanwhile.",
    edit="Shuffle before the costly map (paths, ids or records in place of decoded elements). A "
    "smaller buffer where the shuffle can't stand anywhere else.",
    cost="Elements come in another order. Before a cache, the order would be frozen.",
    needs=("loop", "pipeline", "steps"),
    thresholds=(FIRST_BATCHES, FILL_SHARE, FILL_STEPS, SHUFFLE_PART),
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    tried_when_informing=True,
)


def check_slow_shuffle_fill(session: Session) -> list[Finding]:
    """Return a finding on the shuffle with the longest fill."""
    shuffles = operations(session, "shuffle")
    if not shuffles:
        return [SLOW_SHUFFLE_FILL.finding("not-applicable", "The pipeline has no shuffle.")]
    fill_ms = session.steps.fill_ms if session.steps else None
    if fill_ms is None:
        reason = "The wait for the first batch was not measured."
        return [SLOW_SHUFFLE_FILL.finding("inconclusive", reason)]
    op = max(shuffles, key=lambda shuffle: _fill_estimate_ms(session, shuffle) or 0.0)
    time = time_of_epochs(session)
    if time is not None and time.first_batch_ms is not None:
        return [_by_later_epochs(session, op, time, time.first_batch_ms)]
    return [_by_first_epoch(session, op, fill_ms)]


def _by_later_epochs(session: Session, op: Operation, time: LoopTime, wait_ms: float) -> Finding:
    """Judge by the waits of later epochs, in which the pipeline's start has no part."""
    estimate, share = _fill_estimate_ms(session, op), first_batch_percent(session)
    evidence: dict[str, Scalar] = {
        "fill_ms": wait_ms,
        "buffer_size": _buffer(op),
        "estimated_fill_ms": estimate,
        "fill_percent_of_loop": share,
        "epoch_ends_seen": time.epoch_ends_seen,
    }
    if long_percent(session) is None:
        return SLOW_SHUFFLE_FILL.finding("pass", op=op, evidence=evidence)
    if _is_the_wait(session, op) or (estimate is None and holds_all(session, op)):
        estimate = wait_ms
    # What filled the buffer is done beside the steps then. An epoch makes all its elements, and the
    # buffer those that it holds: no less is left to do.
    buffer, above = _buffer(op), upstream(session, op)
    count = above[0].cardinality if above else None
    more = count is not None and buffer is not None and 0 < buffer < count
    times = count / buffer if more and count and buffer else 1.0
    work_s = max(0.0, times * time.first_batches_s - time.steps_s)
    if estimate is not None and work_s > 0:
        evidence["work_left_s"] = work_s
    at_most = without_first_batches(session, time, work_s)
    for_run = run_without_first_batches(session, time, work_s)
    return _judged(session, op, wait_ms, estimate, evidence, at_most, for_run)


def _is_the_wait(session: Session, op: Operation) -> bool:
    """Return True if nothing but the fill can be what a first batch waits for.

    All of the data goes into the buffer first, and nothing costly comes behind it. Costs of steps
    tell little then: what stands above the shuffle does not run during them.
    """
    buffer, above = _buffer(op), upstream(session, op)
    counts = [one.cardinality for one in above if one.cardinality is not None]
    if buffer is None or not counts or not 0 < counts[0] <= buffer:
        return False
    if op.self_ms_per_step is None or any(_is_costly(one) for one in downstream(session, op)):
        return False
    costly = [delay_ms(session, one) for one in above if _is_costly(one)]
    known = sum(delay_ms(session, one) or 0.0 for one in above)
    return None in costly or sum(delay or 0.0 for delay in costly) >= known / 2


def _by_first_epoch(session: Session, op: Operation, fill_ms: float) -> Finding:
    estimate = _fill_estimate_ms(session, op)
    if estimate is None and comes_again(session) == op:
        estimate = fill_ms
    loop, passes = session.diagnosed_loop(), passes_over_data(session)
    share = None
    if loop is not None and loop.projected_s:
        # The first wait also holds the pipeline's start, which later epochs don't repeat.
        repeated_ms = fill_ms if estimate is None else min(fill_ms, estimate)
        fills = passes if passes is not None and passes != math.inf else 1
        share = min(95.0, 100.0 * repeated_ms * fills / (1000.0 * loop.projected_s))
    evidence: dict[str, Scalar] = {
        "fill_ms": fill_ms,
        "buffer_size": _buffer(op),
        "estimated_fill_ms": estimate,
        "fill_percent_of_loop": share,
    }
    steps_ms = FILL_STEPS.value * (session.steps.mean_ms if session.steps else math.inf)
    if fill_ms < steps_ms if share is None else share < FILL_SHARE.value:
        return SLOW_SHUFFLE_FILL.finding("pass", op=op, evidence=evidence)
    at_most = None if share is None else bound(100.0, share)
    for_run = gain_at_most(session.run, starts_s(session))
    return _judged(session, op, fill_ms, estimate, evidence, at_most, for_run)


def _judged(
    session: Session,
    op: Operation,
    fill_ms: float,
    estimate: float | None,
    evidence: dict[str, Scalar],
    at_most: float | None,
    for_run: RunGain | None,
) -> Finding:
    """Return what a long wait before the first batch is: a fill, and with what."""
    costly = [other for other in upstream(session, op) if _is_costly(other)]
    share = evidence["fill_percent_of_loop"]
    if estimate is None and not costly:
        return SLOW_SHUFFLE_FILL.finding("pass", op=op, evidence=evidence)
    filling = 1.0 if estimate is None or fill_ms <= 0.0 else min(1.0, estimate / fill_ms)
    if estimate is not None and isinstance(share, float) and share * filling < FILL_SHARE.value:
        # Too small a part of the loop for a trial to show it.
        return SLOW_SHUFFLE_FILL.finding("pass", op=op, evidence=evidence)
    slowest = max(costly, key=lambda other: delay_ms(session, other) or 0.0, default=None)
    moved = _moved_above(session, op, slowest) if slowest is not None else None
    smaller = None if moved is not None else smaller_buffer(session, op, SLOW_SHUFFLE_FILL.id)
    finding = partial(
        SLOW_SHUFFLE_FILL.finding,
        op=op,
        evidence=evidence,
        effect=None if smaller is None else "changes a hyper-parameter",
        condition=None if smaller is None else ENOUGH_MIXED,
        edit=moved or smaller,
    )
    name, took = call_name(op), time_taken(fill_ms)
    size = smaller_size(session, op)
    sooner = "a smaller buffer" if size is None else f"a buffer of {size}"
    if estimate is None or estimate < fill_ms * SHUFFLE_PART.value / 100.0:
        known = evidence["estimated_fill_ms"]
        part = (
            f"by the cost of its elements, filling {name} is {time_taken(known)} of that"
            if isinstance(known, float)
            else f"whether filling {name} is part of that is not known"
        )
        edit = moved or smaller
        return finding(
            "informative" if edit else "inconclusive",
            f"The first batch was waited for {took}; {part}.{' A trial tells.' if edit else ''}",
            title="Try whether the first batch waits for the shuffle buffer",
        )
    if slowest is None:
        advice = f"Filling {name} took {took}, with nothing costly above it: {sooner} fills sooner"
        return finding("informative", f"{advice} and shuffles less.")
    advice = (
        f"Move {name} above {call_name(slowest)}: it took {took} to fill with finished elements, "
        "and fills in a moment with raw ones."
    )
    if slowest.kind == "from_generator":
        advice = (
            f"Let the generator of {call_name(slowest)} shuffle indices itself and drop {name}, "
            f"which took {took} to fill."
        )
    if "work_left_s" in evidence:
        advice += " What makes them would then set the pace of the steps."
    advice += foretold(time_of_epochs(session))
    if smaller is not None:
        advice += f" Until then, {sooner} fills sooner and shuffles less."
    return finding(
        "fail",
        advice,
        untried="The shuffle can't be moved above what makes its elements of others.",
        part="epoch_start",
        for_run=for_run,
        speedup_at_most=at_most,
    )


def _moved_above(session: Session, op: Operation, slowest: Operation) -> Edit | None:
    """Return the shuffle above the costly operation, where both let the same elements through."""
    path = between(session, slowest, op)
    if path is None or len(slowest.parent_ids) != 1 or not keeps_elements([slowest, *path]):
        return None
    return Edit(
        id=f"{SLOW_SHUFFLE_FILL.id}:{op.id}",
        label=f"the {place_name(op)} above the {place_name(slowest)}",
        changes=(Move(op.id, slowest.parent_ids[0]),),
        check="shape",
        whole_epoch=True,
    )


def _is_costly(op: Operation) -> bool:
    return op.kind in RUNS_A_FUNCTION and not op.removed_by_tensorflow


def _fill_estimate_ms(session: Session, op: Operation) -> float | None:
    """Return the buffer's size times the delay of one element above the shuffle."""
    buffer, above = _buffer(op), upstream(session, op)
    delays = [delay_ms(session, other) for other in above]
    per_step = above[0].elements if above else None
    if buffer is None or not per_step or all(delay is None for delay in delays):
        return None
    count = above[0].cardinality
    size = min(buffer, count) if count is not None and count > 0 else buffer
    return size * sum(delay or 0.0 for delay in delays) / per_step
