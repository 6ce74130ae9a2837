"""Shuffle buffers: too small to mix, or slow to fill."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
from pipediag.vocabulary import EffectOnResults, Scalar

COVERAGE = Threshold(
    "buffer size",
    1.0,
    "% of the elements",
    "own choice: an element then moves by about a hundredth of the data, so sorted data stays "
    "sorted",
)
SMALL_SHUFFLE = Meta(
    id="small-shuffle",
    name="Small shuffle",
    title_failed="A shuffle is too small to mix the data",
    title_passed="Shuffles mix the data",
    why="An element can come early by no more than the buffer's size. A buffer no larger than a "
    "batch mixes within batches only, and after a batch whole batches change places.",
    edit="A larger buffer, before the batch; shuffle file names too.",
    cost="Memory for the buffer's elements, and time to fill it before the first step.",
    needs=("loop", "pipeline"),
    thresholds=(COVERAGE,),
    severity="warn",
    effect_on_results="same up to order or rounding",
    subject="quality",
    untried="It is about how well the model learns, which a trial of speed can't tell.",
)

_KEEPS_NUMBER = ("map", "shuffle", "prefetch", "cache", "with_options")
_UNKNOWN = (
    "How many elements reach the shuffle is not known: nothing says it before the pipeline runs, "
    "and no epoch of it ended while the loop was watched."
)


def check_small_shuffle(session: Session) -> list[Finding]:
    """One finding for each shuffle."""
    # A helper mixes the names of the files itself before its shuffle does the rest.
    shuffles = [op for op in operations(session, "shuffle") if not op.made_by_framework]
    if not shuffles:
        return [SMALL_SHUFFLE.finding("not-applicable", "The pipeline has no shuffle.")]
    return [_small_finding(session, op) for op in shuffles]


def _small_finding(session: Session, op: Operation) -> Finding:
    above = upstream(session, op)
    buffer = op.parameters.get("buffer_size")
    count, at_most = _counts(session, op, above)
    evidence: dict[str, Scalar] = {"buffer_size": buffer, "elements": count}
    if not isinstance(buffer, int) or buffer < 0:
        return SMALL_SHUFFLE.finding(
            "inconclusive", "The buffer's size is not known.", op=op, evidence=evidence
        )
    if any(other.kind == "shuffle" for other in above) or (
        at_most is not None and buffer >= at_most
    ):
        return SMALL_SHUFFLE.finding("pass", "", op=op, evidence=evidence)
    problem = _problem(session, op, buffer, count)
    if problem is not None:
        return SMALL_SHUFFLE.finding("fail", problem, op=op, evidence=evidence)
    if at_most is None or buffer < at_most * COVERAGE.value / 100.0:
        return SMALL_SHUFFLE.finding("not-applicable", _UNKNOWN, op=op, evidence=evidence)
    return SMALL_SHUFFLE.finding("pass", "", op=op, evidence=evidence)


def _problem(session: Session, op: Operation, buffer: int, count: int | None) -> str | None:
    batch = next((other for other in upstream(session, op) if other.kind in BATCHING), None)
    if batch is not None and not any(o.kind == "unbatch" for o in upstream(session, op)):
        if batch.made_by_framework:
            single = (
                f"Put `.unbatch()` behind {framework_call(batch)}"
                if gives_batches_alone(batch)
                else f"Pass `batch_size=None` to {framework_call(batch)}"
            )
            return (
                f"{single}, and put {call_name(op)} and then a `batch` behind it: as it is, whole "
                "batches change places and their examples stay together."
            )
        return (
            f"Move {call_name(op)} above {call_name(batch)}: behind it, whole batches change "
            "places and their examples stay together."
        )
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
    seen do.
    """
    once = (other for other in above if other.kind != "repeat" and other.cardinality != -1)
    nearest = next(once, None)
    if nearest is not None and nearest.cardinality is not None:
        return nearest.cardinality, nearest.cardinality
    return _counted_in_epochs(session, op)


def _counted_in_epochs(session: Session, op: Operation) -> tuple[int | None, int | None]:
    """Return the examples of an epoch: each iterator but the last has gone through one.

    None where an epoch's examples are others than those that are shuffled.
    """
    loop = session.diagnosed_loop()
    behind = downstream(session, op)
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
"""That it still holds. Own choice: fewer would mix little more than the examples of a batch."""

ENOUGH_MIXED = "if the model learns as well from data that is mixed less"


def held_elements(session: Session, shuffle: Operation) -> int | None:
    """What the buffer holds once it is full: no more than there is; None where that is not known.

    An endless repeat above it brings more than there is.
    """
    buffer = shuffle.buffer_size or shuffle.parameters.get("buffer_size")
    if not isinstance(buffer, int) or buffer <= 0:
        return None
    above = upstream(session, shuffle)
    count = above[0].cardinality if above else None
    return min(buffer, count) if count is not None and count > 0 else buffer


def smaller_size(session: Session, shuffle: Operation) -> int | None:
    """A tenth, but some batches and enough to mix the data; None where that is hardly less."""
    held = held_elements(session, shuffle)
    behind = following_batch(session, shuffle)
    batch = behind.parameters.get("batch_size") if behind is not None else None
    if held is None or not isinstance(batch, int):
        return None
    above = upstream(session, shuffle)
    count = above[0].cardinality or 0 if above else 0
    enough = math.ceil(count * COVERAGE.value / 100.0)
    size = max(held // PART, LEAST_BATCHES * batch, enough)
    return size if size <= held // 2 else None


def smaller_buffer(session: Session, shuffle: Operation, rule: str) -> Edit | None:
    """To be tried in whole epochs, as steps alone don't show a fill."""
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


FORETOLD = (
    " No end of an epoch was seen: that later epochs wait as long as the first is inferred from "
    "their shuffle, which fills anew in each."
)
"""To be appended to advice on such waits."""


def foretold(time: LoopTime | None) -> str:
    """What the advice rests on, where no later epoch was seen to wait."""
    return FORETOLD if time is not None and not time.epoch_ends_seen else ""


def without_first_batches(session: Session, time: LoopTime, instead_s: float = 0.0) -> float | None:
    """The loop over the loop without those waits, its start included where that is known.

    `instead_s`: what the steps take longer then. Waits that no end of an epoch showed are not in
    what the loop is said to take.
    """
    loop = session.diagnosed_loop()
    projected = loop.projected_s if loop is not None and time.epoch_ends_seen else None
    whole = projected or time.total_s
    left = whole - time.first_batches_s + instead_s
    return bound(whole, whole - left)


def run_without_first_batches(
    session: Session, time: LoopTime, instead_s: float = 0.0
) -> RunGain | None:
    """What the run gains at most without them, by its ledger; None where that is not known.

    The ledger may be of one epoch where the loop's time is of all that were seen, so what the steps
    take longer is given as a part of the waits.
    """
    waits_s = later_starts_s(session)
    if waits_s is None or time.first_batches_s <= 0.0:
        return None
    saved_s = waits_s * max(0.0, 1.0 - instead_s / time.first_batches_s)
    return gain_at_most(session.run, saved_s)


FILL_SHARE = Threshold(
    "time to fill the buffer",
    5.0,
    "% of the whole training loop",
    "own choice, equal to the limit on input wait",
)
FILL_STEPS = Threshold(
    "time to fill the buffer where the loop's length is unknown",
    100.0,
    "steps",
    "own choice: time in which a hundred steps could have run",
)
SHUFFLE_PART = Threshold(
    "part of the wait that filling explains",
    30.0,
    "% of the wait for the first batch",
    "own choice: below it the advice only informs",
)
SLOW_SHUFFLE_FILL = Meta(
    id="epoch-start",
    name="Slow shuffle fill",
    title_failed="Training waits while a shuffle buffer fills with costly elements",
    title_passed="The shuffle buffer fills quickly",
    why="A shuffle hands out nothing until its buffer is full, and it fills anew in each epoch: "
    "buffer size times the time of one element, with nothing trained meanwhile.",
    edit="Shuffle before the costly map (paths, ids or records in place of decoded elements). A "
    "smaller buffer where the shuffle can't stand anywhere else.",
    cost="Elements come in another order. Before a cache, the order would be frozen: keep it "
    "behind.",
    needs=("loop", "pipeline", "steps"),
    thresholds=(FIRST_BATCHES, FILL_SHARE, FILL_STEPS, SHUFFLE_PART),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    tried_when_informing=True,
)

_NOT_MOVED = (
    "The shuffle can't be moved above what makes its elements: others come in there than go out."
)
_MIXES_LESS: EffectOnResults = "changes a hyper-parameter"
_WORK_LEFT = " What makes them would then set the pace of the steps: make that cheaper as well."


def check_slow_shuffle_fill(session: Session) -> list[Finding]:
    """One finding for the shuffle with the longest fill."""
    shuffles = operations(session, "shuffle")
    if not shuffles:
        return [SLOW_SHUFFLE_FILL.finding("not-applicable", "The pipeline has no shuffle.")]
    fill_ms = session.steps.fill_ms if session.steps else None
    if fill_ms is None:
        return [
            SLOW_SHUFFLE_FILL.finding(
                "inconclusive", "The wait for the first batch was not measured."
            )
        ]
    op = max(shuffles, key=lambda shuffle: _fill_estimate_ms(session, shuffle) or 0.0)
    time = time_of_epochs(session)
    if time is not None and time.first_batch_ms is not None:
        return [_seen(session, op, time, time.first_batch_ms)]
    return [_fill_finding(session, op, fill_ms)]


def _seen(session: Session, op: Operation, time: LoopTime, wait_ms: float) -> Finding:
    """By the waits of later epochs, which the pipeline's start has no part in if they were seen."""
    estimate, percent = _fill_estimate_ms(session, op), long_percent(session)
    evidence: dict[str, Scalar] = {
        "fill_ms": wait_ms,
        "buffer_size": op.buffer_size or op.parameters.get("buffer_size"),
        "estimated_fill_ms": estimate,
        "fill_percent_of_loop": first_batch_percent(session),
        "epoch_ends_seen": time.epoch_ends_seen,
    }
    if percent is None:
        return SLOW_SHUFFLE_FILL.finding("pass", "", op=op, evidence=evidence)
    if _is_the_wait(session, op) or (estimate is None and holds_all(session, op)):
        estimate = wait_ms
    if estimate is None:
        return _by_costs(session, op, wait_ms, None, evidence)
    work_s = _work_in_steps_s(session, op, time)
    at_most = without_first_batches(session, time, work_s)
    if work_s > 0:
        evidence["work_left_s"] = work_s
    for_run = run_without_first_batches(session, time, work_s)
    return _by_costs(session, op, wait_ms, estimate, evidence, at_most, for_run)


def _is_the_wait(session: Session, op: Operation) -> bool:
    """Whether nothing but the fill can be what a first batch waits for.

    All of the data goes into the buffer first, and nothing costly comes behind it. Costs of steps
    tell little then: what stands above the shuffle does not run during them.
    """
    buffer = op.buffer_size or op.parameters.get("buffer_size")
    above = upstream(session, op)
    counts = [one.cardinality for one in above if one.cardinality is not None]
    if not isinstance(buffer, int) or not counts or not 0 < counts[0] <= buffer:
        return False
    if op.self_ms_per_step is None or any(_is_costly(one) for one in downstream(session, op)):
        return False
    costly = [delay_ms(session, one) for one in above if _is_costly(one)]
    known = sum(delay_ms(session, one) or 0.0 for one in above)
    return None in costly or sum(delay or 0.0 for delay in costly) >= known / 2


def _work_in_steps_s(session: Session, op: Operation, time: LoopTime) -> float:
    """What the steps take longer once the work that filled the buffer is done beside them.

    An epoch makes all its elements, and the buffer those that it holds: no less is left to do.
    """
    buffer = op.buffer_size or op.parameters.get("buffer_size")
    above = upstream(session, op)
    count = above[0].cardinality if above else None
    times = 1.0
    if isinstance(buffer, int) and buffer > 0 and count is not None and count > buffer:
        times = count / buffer
    return max(0.0, times * time.first_batches_s - time.steps_s)


def _fill_finding(session: Session, op: Operation, fill_ms: float) -> Finding:
    estimate = _fill_estimate_ms(session, op)
    if estimate is None and comes_again(session) == op:
        estimate = fill_ms
    # The first wait also holds the pipeline's start, which later epochs don't repeat.
    share = _share_of_loop(session, fill_ms if estimate is None else min(fill_ms, estimate))
    evidence: dict[str, Scalar] = {
        "fill_ms": fill_ms,
        "buffer_size": op.buffer_size or op.parameters.get("buffer_size"),
        "estimated_fill_ms": estimate,
        "fill_percent_of_loop": share,
    }
    if not _is_long(session, fill_ms, share):
        return SLOW_SHUFFLE_FILL.finding("pass", "", op=op, evidence=evidence)
    at_most = None if share is None else bound(100.0, share)
    for_run = gain_at_most(session.run, starts_s(session))
    return _by_costs(session, op, fill_ms, estimate, evidence, at_most, for_run)


def _by_costs(
    session: Session,
    op: Operation,
    fill_ms: float,
    estimate: float | None,
    evidence: Mapping[str, Scalar],
    at_most: float | None = None,
    for_run: RunGain | None = None,
) -> Finding:
    """A long wait before the first batch: whether it is a fill, and with what."""
    costly = [other for other in upstream(session, op) if _is_costly(other)]
    if (estimate is None and not costly) or _is_next_to_nothing(estimate, fill_ms, evidence):
        return SLOW_SHUFFLE_FILL.finding("pass", "", op=op, evidence=evidence)
    if estimate is None or estimate < fill_ms * SHUFFLE_PART.value / 100.0:
        return _to_settle(session, op, costly, fill_ms, evidence)
    if not costly:
        advice = (
            f"Filling {call_name(op)} took {time_taken(fill_ms)}, with nothing costly above it: "
            f"{_smaller(session, op)} fills sooner and shuffles less."
        )
        return SLOW_SHUFFLE_FILL.finding(
            "informative",
            advice,
            op=op,
            evidence=evidence,
            effect=_MIXES_LESS,
            condition=ENOUGH_MIXED,
            edit=smaller_buffer(session, op, SLOW_SHUFFLE_FILL.id),
        )
    slowest = max(costly, key=lambda other: delay_ms(session, other) or 0.0)
    moved = _edit(session, op, slowest)
    smaller = None if moved is not None else smaller_buffer(session, op, SLOW_SHUFFLE_FILL.id)
    advice = _advice(op, slowest, fill_ms) + (_WORK_LEFT if "work_left_s" in evidence else "")
    if evidence.get("epoch_ends_seen") == 0:
        advice += FORETOLD
    if smaller is not None:
        advice += f" Until then, {_smaller(session, op)} fills sooner and shuffles less."
    return SLOW_SHUFFLE_FILL.finding(
        "fail",
        advice,
        op=op,
        evidence=evidence,
        effect=None if smaller is None else _MIXES_LESS,
        condition=None if smaller is None else ENOUGH_MIXED,
        edit=moved or smaller,
        untried=_NOT_MOVED,
        part="epoch_start",
        for_run=for_run,
        speedup_at_most=at_most,
    )


def _is_next_to_nothing(
    estimate: float | None, fill_ms: float, evidence: Mapping[str, Scalar]
) -> bool:
    """Whether filling as such is too small a part of the loop for a trial to show it."""
    share = evidence.get("fill_percent_of_loop")
    if estimate is None or not isinstance(share, float) or fill_ms <= 0.0:
        return False
    return share * min(1.0, estimate / fill_ms) < FILL_SHARE.value


def _to_settle(
    session: Session,
    op: Operation,
    costly: list[Operation],
    fill_ms: float,
    evidence: Mapping[str, Scalar],
) -> Finding:
    """What filling has to do with the wait is not known, so that a trial tells."""
    slowest = max(costly, key=lambda other: delay_ms(session, other) or 0.0, default=None)
    moved = _edit(session, op, slowest) if slowest is not None else None
    smaller = None if moved is not None else smaller_buffer(session, op, SLOW_SHUFFLE_FILL.id)
    estimate = evidence.get("estimated_fill_ms")
    part = (
        f"by the cost of its elements, filling {call_name(op)} is {time_taken(estimate)} of that"
        if isinstance(estimate, float)
        else f"whether filling {call_name(op)} is part of that is not known"
    )
    tells = " A trial tells." if moved or smaller else ""
    return SLOW_SHUFFLE_FILL.finding(
        "informative" if moved or smaller else "inconclusive",
        f"The first batch was waited for {time_taken(fill_ms)}; {part}.{tells}",
        op=op,
        evidence=evidence,
        title="Filling a shuffle buffer may be what the first batch waits for",
        effect=None if smaller is None else _MIXES_LESS,
        condition=None if smaller is None else ENOUGH_MIXED,
        edit=moved or smaller,
    )


def _smaller(session: Session, op: Operation) -> str:
    size = smaller_size(session, op)
    return "a smaller buffer" if size is None else f"a buffer of {size}"


def _edit(session: Session, op: Operation, slowest: Operation) -> Edit | None:
    """The shuffle above the costly operation, where both let the same elements through."""
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
    """Buffer size times the delay of one element above the shuffle."""
    buffer = op.buffer_size or op.parameters.get("buffer_size")
    above = upstream(session, op)
    delays = [delay_ms(session, other) for other in above]
    per_step = above[0].elements if above else None
    if not isinstance(buffer, int) or not per_step or all(delay is None for delay in delays):
        return None
    size = min([buffer, *(o.cardinality for o in above[:1] if o.cardinality and o.cardinality > 0)])
    return size * sum(delay or 0.0 for delay in delays) / per_step


def _share_of_loop(session: Session, fill_ms: float) -> float | None:
    loop = session.diagnosed_loop()
    if loop is None or not loop.projected_s:
        return None
    passes = passes_over_data(session)
    fills = passes if passes is not None and passes != math.inf else 1
    return min(95.0, 100.0 * fill_ms * fills / (1000.0 * loop.projected_s))


def _is_long(session: Session, fill_ms: float, share: float | None) -> bool:
    if share is not None:
        return share >= FILL_SHARE.value
    return session.steps is not None and fill_ms >= FILL_STEPS.value * session.steps.mean_ms


def _advice(op: Operation, slowest: Operation, fill_ms: float) -> str:
    if slowest.kind == "from_generator":
        return (
            f"Let the generator of {call_name(slowest)} shuffle indices itself and drop "
            f"{call_name(op)}, which took {time_taken(fill_ms)} to fill."
        )
    return (
        f"Move {call_name(op)} above {call_name(slowest)}: it took {time_taken(fill_ms)} to fill "
        "with finished elements, and fills in a moment with raw ones."
    )
