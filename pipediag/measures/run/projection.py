"""A training that was stopped, carried on to its planned end: epoch by epoch, part by part."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from pipediag.facts.step import lengths_vary
from pipediag.measures.loop_time import SLOW_ONES, are_doubtful, cache_filled_meanwhile, usual_ns
from pipediag.measures.run.amounts import Amounts, SteadyStep, starts_of, steps_of
from pipediag.measures.run.epochs import (
    FEWEST_FOR_INTERVAL,
    Epochs,
    Projected,
    as_often,
    carried_on_from_few,
    in_doubt,
    makings_of,
    projected,
)
from pipediag.measures.run.places import EXIT, Place
from pipediag.measures.run.rounds import Rounds
from pipediag.session.ledger import AFTERWARDS, AN_EPOCHS_END, COMES_ONCE, MAKING
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.vocabulary import RunScope

EXIT_COLLECTIONS = 5.4
"""An interpreter that ends collects garbage several times: the exits of four scripts that use
TensorFlow took 5.0 to 5.7 times as long as one collection at their end (CPython 3.11)."""


@dataclass
class Projection:
    """What the whole is, and the places that are not as they were seen."""

    scope: RunScope
    places: dict[Place, Projected]
    only_these: bool = False
    """Whether the whole holds nothing else, as where it is one epoch."""
    missing: str | None = None
    """Why it is not the whole run, where it is not."""
    not_seen: list[str] = field(default_factory=list)
    epochs_planned: int | None = None
    epochs_before: int = 0
    """Of those planned, in rounds that were over."""
    epoch_ns: float | None = None
    """The steps of an epoch, where the number of epochs is known."""


def project(
    recording: Recording,
    loop: RecordedLoop,
    epochs: Epochs,
    amounts: Amounts,
    step: SteadyStep,
    rounds: Rounds,
) -> Projection:
    """From what was seen of the loop that was stopped; all places before it stay as they were."""
    calls = loop.batches_per_call
    length = _batches_of_epoch(recording, loop)
    filled = cache_filled_meanwhile(recording, loop) is not None
    plan = None if filled else _planned(loop, epochs, step, length)
    if plan is not None:
        count, steps, known = plan
        projection = Projection("run", {}, epochs_planned=count * rounds.calls if known else None)
        projection.epochs_before = epochs.before_count if rounds.calls > 1 else 0
        projection.epoch_ns = step.ns * steps / count if known else None
        _carry_on(projection, loop, epochs, amounts, step, count, steps)
        _build_again(projection, loop, epochs, amounts, step, steps)
        before = _before(loop, epochs, amounts)
        for place, one in projection.places.items():
            again = one.times(1 + rounds.left)
            projection.places[place] = again.plus_ns(before.get(place, 0))
        _go_round(projection, amounts, rounds)
        if recording.collection_ns is not None:
            projection.places[EXIT] = in_doubt(EXIT_COLLECTIONS * recording.collection_ns, None)
        projection.not_seen += [*rounds.not_seen, AFTERWARDS]
        return projection
    scope: RunScope = "epoch" if length else "1000_steps"
    given = None if loop.from_python else _given_epochs(loop, epochs)
    missing = _why_not_the_run(scope, given, filled=filled)
    projection = Projection(scope, {}, only_these=True, missing=missing)
    steps = length or 1000
    if length:
        _carry_on(projection, loop, epochs, amounts, step, 1, steps / calls)
    else:
        _scale(projection, loop, epochs, amounts, step, steps / calls)
    _build_again(projection, loop, epochs, amounts, step, steps / calls)
    projection.not_seen.append(COMES_ONCE)
    return projection


def _why_not_the_run(scope: RunScope, given_epochs: int | None, *, filled: bool) -> str:
    if filled:
        these = "this is that epoch" if scope == "epoch" else "these are 1,000 steps of it"
        return (
            "It was stopped in the epoch that fills its cache, and how long those take that read "
            f"it is not known: {these}."
        )
    if scope == "epoch":
        return (
            "Nothing says how many epochs the script would train, and it was stopped: this is one "
            "of them."
        )
    if given_epochs:
        return (
            f"The script trains for {given_epochs} epochs, but it was stopped before one was over, "
            "and nothing says how many steps one has: these are 1,000 steps."
        )
    return (
        "Nothing says how long the script would train, and it was stopped: these are 1,000 steps."
    )


def _go_round(projection: Projection, amounts: Amounts, rounds: Rounds) -> None:
    """What no epoch of the training holds comes with each round as it came in those seen."""
    for place, again in rounds.others.items():
        if place in projection.places or again.to_come <= 0:
            continue
        count, took = amounts.count.get(place), amounts.ns.get(place, 0)
        whole_rounds = again.times - bool(again.begun)
        counted = None if count is None else round(count + again.count * whole_rounds)
        to_come = projected(again.rounds_ns, again.times)
        # What hooks can't tell apart is divided in `amounts`, and is in no round by itself.
        to_come = to_come.share(took * again.share * again.to_come / to_come.ns)
        projection.places[place] = replace(to_come.plus_ns(took), count=counted)


def _planned(
    loop: RecordedLoop, epochs: Epochs, step: SteadyStep, length: int | None
) -> tuple[int, float, bool] | None:
    """Epochs, calls of a step in all, and whether the number of epochs is known.

    A loop of the script's own has as many as the loops around it make rounds; where Python feeds
    the steps, each round is one of them. Of data without a known length, an epoch is as long as
    those that were seen to their end.
    """
    if loop.from_python:
        rounds = loop.planned_rounds
        known = rounds is not None and rounds >= loop.steps
        return (1, rounds / loop.batches_per_call, False) if known and rounds else None
    given = _given_epochs(loop, epochs)
    if given and length and not loop.keras:
        return given, given * length / loop.batches_per_call, True
    if loop.planned_steps:
        per_epoch = loop.keras.steps_per_epoch if loop.keras else None
        count = max(1, round(loop.planned_steps / per_epoch)) if per_epoch else 1
        return count, loop.planned_steps / loop.batches_per_call, bool(per_epoch)
    # The first one may have filled a cache.
    whole = epochs.steps_ns[1:-1] or epochs.steps_ns[:-1] or epochs.whole_ns
    if not given or not whole or step.ns <= 0:
        return None
    return given, given * (sum(whole) / len(whole)) / step.ns, True


def _given_epochs(loop: RecordedLoop, epochs: Epochs) -> int | None:
    """Return how many epochs the script asks for, where it says so."""
    return loop.keras.epochs if loop.keras else _own_epochs(loop, epochs)


def _own_epochs(loop: RecordedLoop, epochs: Epochs) -> int | None:
    """None also where more were seen than the source told of."""
    planned = loop.planned_rounds
    seen = max(loop.iterators, len(epochs.steps_ns))
    return planned if planned is not None and seen <= planned else None


def _carry_on(
    projection: Projection,
    loop: RecordedLoop,
    epochs: Epochs,
    amounts: Amounts,
    step: SteadyStep,
    count: int,
    steps: float,
) -> None:
    calls = steps / count
    if epochs.are_interrupted_within(
        calls * step.ns, epochs_counted=loop.steps / loop.batches_per_call / calls
    ):
        _scale(projection, loop, epochs, amounts, step, steps)
        return
    counted = projection.scope == "epoch" or projection.epochs_planned is not None
    steady = _times(step, steps)
    whole = _in_epochs(loop, epochs, amounts, steady, count) if counted else None
    projection.places[steps_of(loop)] = whole or steady
    starts = epochs.starts_ns or _starts_in_calls(loop, amounts)
    later = epochs.later_starts_ns or starts[1:] or starts
    if projection.scope == "run":
        waits = projected(later, count - 1).plus_ns(starts[0])
        projection.places[starts_of(loop)] = replace(waits, count=count, projected=count > 1)
    else:
        projection.places[starts_of(loop)] = projected(later, count)
    if not epochs.ends_seen and not epochs.usual_ends_ns:
        projection.not_seen.append(AN_EPOCHS_END)
    for place, times in epochs.usual_ends_ns.items():
        few = len(times) < FEWEST_FOR_INTERVAL
        if few and place.what == MAKING:
            made = makings_of(place, times, epochs, amounts)
            projection.places[place] = made.carried_on(count)
            projection.not_seen += [doubt for doubt in [made.doubt()] if doubt]
        elif few and place in epochs.let_go:
            projection.places[place] = carried_on_from_few(times, count)
            doubtful = are_doubtful(times, usual_ns(times)) and SLOW_ONES not in projection.not_seen
            projection.not_seen += [SLOW_ONES] if doubtful else []
        else:
            projection.places[place] = projected(times, count)
    if epochs.paused and SLOW_ONES not in projection.not_seen:
        projection.not_seen.append(SLOW_ONES)


def _in_epochs(
    loop: RecordedLoop, epochs: Epochs, amounts: Amounts, steady: Projected, count: int
) -> Projected | None:
    """As long as whole epochs took, which have slow steps and an end that no steady step has."""
    if not epochs.whole_ns or steady.ns <= 0:
        return None
    # Where a step asks for an epoch's first batch, its wait is told by itself.
    waits = [] if epochs.starts_ns else amounts.waits_ns.get(loop.id, [])
    wait = sum(waits) / len(waits) if waits else 0.0
    whole = projected([max(0, round(ns - wait)) for ns in epochs.whole_ns], count)
    few = len(epochs.whole_ns) < FEWEST_FOR_INTERVAL
    scattered = steady.share(whole.ns / steady.ns) if few else whole
    return Projected(whole.ns, steady.count, scattered.limits_ns)


def _starts_in_calls(loop: RecordedLoop, amounts: Amounts) -> list[int]:
    later = amounts.waits_ns.get(loop.id, [])
    return [max(0, amounts.ns.get(starts_of(loop), 0) - sum(later)), *later]


def _before(loop: RecordedLoop, epochs: Epochs, amounts: Amounts) -> dict[Place, int]:
    """What other trainings took, waits within their steps as long as they were on the average."""
    before = dict(epochs.before_ns)
    steps, waits = steps_of(loop), amounts.waits_ns.get(loop.id)
    if not epochs.starts_ns and waits and steps in before:
        waited = min(before[steps], round(epochs.before_count * sum(waits) / len(waits)))
        before[steps] -= waited
        before[starts_of(loop)] = before.get(starts_of(loop), 0) + waited
    return before


def _scale(
    projection: Projection,
    loop: RecordedLoop,
    epochs: Epochs,
    amounts: Amounts,
    step: SteadyStep,
    steps: float,
) -> None:
    """As often as it came in the steps that were seen."""
    projection.places[steps_of(loop)] = _times(step, steps)
    seen = _steps_seen(loop, epochs, amounts, step)
    if seen <= 0:
        return
    first, *later = epochs.starts_ns or _starts_in_calls(loop, amounts)
    once = first if projection.scope == "run" else 0
    waits = as_often(later, steps / seen).plus_ns(once)
    projection.places[starts_of(loop)] = replace(waits, projected=bool(later))
    for place, times in epochs.usual_ends_ns.items() if epochs.ends_seen else ():
        projection.places[place] = as_often(times, steps / seen)


def _build_again(
    projection: Projection,
    loop: RecordedLoop,
    epochs: Epochs,
    amounts: Amounts,
    step: SteadyStep,
    steps: float,
) -> None:
    """What is built among the steps again and again, as often as in those that were seen."""
    seen = _steps_seen(loop, epochs, amounts, step)
    for place, share in epochs.built_again.items() if seen > 0 else ():
        took = amounts.ns.get(place, 0)
        once = 0 if projection.only_these else round((1.0 - share) * took)
        whole = in_doubt(share * took * _times_as_often(loop, seen, steps), None).plus_ns(once)
        count = amounts.count.get(place)
        counted = None if count is None or not took else round(count * whole.ns / took)
        projection.places[place] = replace(whole, count=counted)


def _times_as_often(loop: RecordedLoop, seen: float, steps: float) -> float:
    """How many times as often something is built in so many steps as in those that were seen.

    Of batches that vary in length fewer and fewer have one that is new: as with words in a text,
    the different ones grow about as the logarithm of the steps. Own measurement: 16 widths in 51
    steps, where this says 24 for 375 and there were 26.
    """
    if loop.shapes_vary or lengths_vary(loop.element_spec or ""):
        return math.log1p(steps) / math.log1p(seen)
    return steps / seen


def _steps_seen(loop: RecordedLoop, epochs: Epochs, amounts: Amounts, step: SteadyStep) -> float:
    """Calls of the training that goes on."""
    earlier = _before(loop, epochs, amounts).get(steps_of(loop), 0)
    return (amounts.ns.get(steps_of(loop), 0) - earlier) / step.ns if step.ns else 0.0


def _times(step: SteadyStep, steps: float) -> Projected:
    if step.limits_ns is None:
        return in_doubt(step.ns * steps, round(steps))
    low, high = step.limits_ns
    return Projected(step.ns * steps, round(steps), (low * steps, high * steps))


def _batches_of_epoch(recording: Recording, loop: RecordedLoop) -> int | None:
    root = next((op for op in recording.operations if op.id == loop.root_op_id), None)
    count = root.cardinality if root else None
    return count if count is not None and count > 0 else None
