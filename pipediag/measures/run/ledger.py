"""The ledger: every second of the run in one place, seen to its end or projected to it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median

from pipediag.facts.script import ended_from_outside
from pipediag.measures.run.amounts import (
    Amounts,
    Projected,
    amounts_of,
    starts_of,
    steady_step,
    steps_of,
)
from pipediag.measures.run.epochs import Epochs, epochs_of, without_pauses
from pipediag.measures.run.places import (
    EXIT,
    PIPEDIAG,
    Place,
    Shares,
    Spent,
    at_line_of,
    callback_lines,
    line_shares,
    run_spans,
    segments_of,
    spent_on,
)
from pipediag.measures.run.projection import Projection, in_its_training, project, rounds_of
from pipediag.measures.steps import Missing, step_ms
from pipediag.session.ledger import EVALUATIONS, CallbackLine, EpochSeen, Run, RunPart
from pipediag.session.messages import ChildResult
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Span, Timeline
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import CUT_SHORT, EVALUATING, RUN_PARTS, RunScope

_MOST_EPOCHS = 200
"""Most epochs that are listed. Own choice: as many show a trend."""

UNMEASURED = (
    "The script was stopped before a training step was measured. This is the part that was seen."
)
NOT_TO_ITS_END = "The script did not run to its end. This is the time that it took until then."
ONLY_OURS = "Pipediag itself took all of the time that was seen of the run."


def measure_run(timeline: Timeline, recording: Recording | None, end: ChildResult) -> Run | Missing:
    """Return the run's ledger, which exists once the script had begun, whatever else is missing."""
    if recording is None or not timeline.spans:
        return Missing("The time of the script was not recorded.")
    stopped = end.outcome == "stopped"
    spent = _spent_of_run(timeline, recording, end)
    trainings = [loop for loop in recording.loops if loop.role == "training"]
    steady = {
        loop.id: step
        for loop in trainings
        if (step := steady_step(timeline, recording, loop)) is not None
    }
    amounts = amounts_of(spent, recording, {key: step.ns for key, step in steady.items()})
    if all(place == PIPEDIAG for place in amounts.ns):
        return Missing(ONLY_OURS)
    trained = [one.place.loop_id for one in spent if one.place.part == "steps"]
    last = next((loop for loop in trainings if trained and loop.id == trained[-1]), None)
    step = steady.get(last.id) if last is not None else None
    epochs = epochs_of(spent, last.id) if last else Epochs([], [], {})
    if last is not None and step is not None:
        epochs = settle_cache_fill(amounts, recording, last, epochs, step.ns)
    shares = line_shares(spent, timeline.seen, amounts.ns)
    if last is not None:
        epochs = without_pauses(amounts, last, epochs, at_line_of(last, shares))
    projection: Projection | None = None
    scope: RunScope = "run"
    not_seen: list[str] = []
    missing = NOT_TO_ITS_END if end.outcome in CUT_SHORT else None
    ended = ended_from_outside(end.outcome, end.script_status)
    if last is not None and step is not None and (stopped or (ended and in_its_training(spent))):
        rounds = rounds_of(spent, last, amounts)
        projection = project(recording, last, epochs, amounts, step, rounds)
        not_seen, scope, missing = projection.not_seen, projection.scope, projection.missing
    elif stopped:
        missing = UNMEASURED
    if timeline.until_ns is not None:
        not_seen.append("what the script did after pipediag had stopped recording its time")
    in_callbacks = callback_lines(spent, timeline.seen)
    seen = {place: ns for place, ns in amounts.ns.items() if place != PIPEDIAG and ns > 0}
    whole = _whole(seen, amounts, projection)
    if scope != "run" and _evaluates_elsewhere(recording, whole):
        not_seen.append(EVALUATIONS)
    epochs_seen, epochs_planned = _epoch_counts(projection, last, epochs, step)
    return Run(
        scope=scope,
        total_s=sum(seen.values()) / 1e9,
        projected_total_s=sum(one.ns for one in whole.values()) / 1e9 if projection else None,
        projected_missing=missing,
        pipediag_s=amounts.ns.get(PIPEDIAG, 0) / 1e9,
        epochs_seen=epochs_seen,
        epochs_planned=epochs_planned,
        not_seen=not_seen,
        parts=_rows(whole, shares, in_callbacks),
        seen=_rows(_whole(seen, amounts, None), shares, in_callbacks) if scope != "run" else [],
        callback_lines=[line for lines in in_callbacks.values() for line in lines],
        spans=run_spans(spent, recording.started_ns),
        whole_epochs=[
            EpochSeen(
                number=one.number,
                end_ms=(one.end_ns - recording.started_ns) / 1e6,
                steps_ms=one.ns / 1e6,
            )
            for one in epochs.whole[:: 1 + len(epochs.whole) // _MOST_EPOCHS]
        ],
    )


def _evaluates_elsewhere(recording: Recording, whole: Iterable[Place]) -> bool:
    """Return True if a loop evaluated, and at no time that the ledger has."""
    places = {(one.file, one.line) for one in whole if one.part == "evaluation"}
    return any(
        loop.role in EVALUATING and loop.iterators > 0 and (loop.file, loop.line) not in places
        for loop in recording.loops
    )


def _spent_of_run(timeline: Timeline, recording: Recording, end: ChildResult) -> list[Spent]:
    """Return the stretches of the run in order, until the script was stopped or ended.

    The interpreter starts before the script's first line, and ends after its last one.
    """
    script = next((span for span in timeline.spans if span.kind == "script"), None)
    end_ns = end.ended_ns
    if end.outcome == "stopped":
        if script is not None and script.end_ns is not None:
            end_ns = script.end_ns
        else:
            windows = [window.end_ns for window in recording.windows]
            last_ns = max([*windows, timeline.last_ns or 0, end.started_ns + 1])
            end_ns = min(end_ns, last_ns)
    if timeline.until_ns is not None:
        end_ns = max(end.started_ns + 1, min(end_ns, timeline.until_ns))
    ours = [
        Span(-1 - number, "aside", window.start_ns, window.end_ns)
        for number, window in enumerate(recording.windows)
        if window.kind in ("profile", "repeat")
    ]
    if end.held_ns is not None:
        # The child writes trials down when they are over.
        ours.append(Span(0, "aside", end.held_ns, end.ended_ns))
    spans = [*_with_last_steps(timeline, recording), *ours]
    segments = segments_of(spans, end.started_ns, end_ns)
    spent = spent_on(segments, recording.loops)
    for index, one in enumerate(spent if script is not None else ()):
        assert script is not None
        if one.span is None and one.end_ns <= script.start_ns:
            spent[index] = replace(one, place=Place("startup", "the interpreter"))
        elif one.span is None and script.end_ns is not None and one.start_ns >= script.end_ns:
            spent[index] = replace(one, place=EXIT)
    return rejoined(spent, recording.loops)


def _with_last_steps(timeline: Timeline, recording: Recording) -> Iterator[Span]:
    """Yield the spans of a run; of steps that Python gives their batches, nothing tells when the
    last one is over: it takes what a step of the baseline does."""
    last: dict[str, tuple[int, int]] = {}
    for loop in recording.loops:
        steps = step_ms(recording, loop, "baseline")
        if loop.from_python and loop.keras is None and loop.last_ns is not None and len(steps):
            last[loop.id] = loop.last_ns, loop.last_ns + round(1e6 * steps.mean())
    for span in timeline.spans:
        begun_ns, over_ns = last.get(span.name, (-1, -1)) if span.kind == "steps" else (-1, -1)
        goes_on = span.start_ns <= begun_ns and over_ns < (span.end_ns or over_ns + 1)
        yield replace(span, end_ns=over_ns) if goes_on else span


def with_given_epochs(recording: Recording, epochs: int) -> Recording:
    """Return the recording with so many epochs for each training whose source states no number."""
    loops = [
        replace(loop, planned_rounds=math.ceil(epochs / _each(loop))) if _lacks(loop) else loop
        for loop in recording.loops
    ]
    return replace(recording, loops=loops)


def with_epochs_noted(run: Run, recording: Recording, epochs: int) -> tuple[Run, str | None]:
    """Return the ledger with given epochs, which `recording` lacks, and a note if it uses none."""
    lacking = [loop for loop in recording.loops if _lacks(loop)]
    planned = {math.ceil(epochs / _each(loop)) * _each(loop) for loop in lacking}
    if run.scope == "run" and run.projected_total_s is not None and run.epochs_planned in planned:
        return run.but(epochs_given=True), None
    why = "the script states how long it trains, or was seen to its end, or in no whole epoch"
    return run, f"`--epochs {epochs}` was not used: {why}."


def _lacks(loop: RecordedLoop) -> bool:
    """Return True if the source states no epochs; a round of steps fed by Python is no epoch."""
    return loop.role == "training" and loop.planned_rounds is None and not loop.from_python


def _each(loop: RecordedLoop) -> int:
    """Return the number of epochs in a round: a `fit` may have several."""
    return (loop.keras.epochs if loop.keras is not None else None) or 1


_OFTEN = 0.5
"""Share of a loop's steps from which on interruptions are a part of them. Own choice: what comes
every hundred steps is rather the end of a round."""


def rejoined(spent: list[Spent], loops: Iterable[RecordedLoop]) -> list[Spent]:
    """Count the rest of steps that are often interrupted, as by a `predict` in each, as steps.

    A hand-over that follows an evaluation shows no step, so the timeline has a stretch for each of
    the steps, with the rest of the step between it and the next.
    """
    joined = list(spent)
    for loop in loops:
        if loop.role != "training" or loop.kind == "keras":
            # Keras tells of its epochs, whose iterator may be one and the same.
            continue
        steps, rest = steps_of(loop), Place("epoch_end", loop_id=loop.id)
        epochs: list[list[int]] = [[]]
        for index, one in enumerate(joined):
            if one.span is not None and (one.span.kind, one.span.name) == ("iterator", loop.id):
                epochs.append([])
            elif one.place == steps:
                epochs[-1].append(index)
        epochs = [epoch for epoch in epochs if epoch]
        interruptions = sum(len({joined[index].span for index in epoch}) - 1 for epoch in epochs)
        if interruptions < _OFTEN * loop.steps / loop.batches_per_call:
            continue
        for epoch in epochs:
            span = joined[epoch[0]].span
            for index in range(epoch[0], epoch[-1] + 1):
                if joined[index].place in (steps, starts_of(loop), rest):
                    joined[index] = replace(joined[index], place=steps, span=span, loop_id=loop.id)
    return joined


WHAT = "filling the cache in the first epoch"


def settle_cache_fill(
    amounts: Amounts, recording: Recording, loop: RecordedLoop, epochs: Epochs, step_ns: float
) -> Epochs:
    """Give the time that fills a cache a place of its own: it comes once, and in no other epoch.

    Return the epochs without that time.
    """
    cache = next((op for op in recording.upstream(loop.root_op_id) if op.kind in CACHES), None)
    if cache is None or len(epochs.steps_ns) < 2:
        return epochs
    per_epoch = loop.keras.steps_per_epoch if loop.keras else None
    # The last epoch may have been cut short.
    whole = epochs.steps_ns[1:-1] or epochs.steps_ns[1:]
    # These have a place of their own by now.
    waits = amounts.waits_ns.get(loop.id) or [0]
    seen_ns = median(whole) - sum(waits) / len(waits)
    usual_ns = per_epoch * step_ns / loop.batches_per_call if per_epoch else seen_ns
    moved_ns = amounts.out_of_first_ns.get(loop.id, 0) if epochs.trainings == 1 else 0
    longer_ns = epochs.longer_at_first_ns(usual_ns, moved_ns)
    if longer_ns:
        place = Place("steps", WHAT, cache.file, cache.line, loop.id)
        amounts.move(longer_ns, steps_of(loop), place)
        amounts.count[place] = 1
    return replace(epochs, steps_ns=[epochs.steps_ns[0] - longer_ns, *epochs.steps_ns[1:]])


def epochs_taken(epochs: Epochs, loop: RecordedLoop, step: Projected | None) -> float | None:
    """Return the number of epochs that were made, or None. Where steps are interrupted within
    epochs, it follows from the time in steps and their count."""
    if not epochs.steps_ns:
        return None
    seen = epochs.before_count + len(epochs.steps_ns)
    per_epoch = loop.keras.steps_per_epoch if loop.keras else None
    if per_epoch and step is not None:
        each_ns, counted = per_epoch / loop.batches_per_call * step.ns, loop.steps / per_epoch
        if epochs.are_interrupted_within(loop, each_ns, counted):
            steps_ns = sum(epochs.steps_ns) + epochs.before_ns.get(steps_of(loop), 0)
            seen = max(1, round(max(steps_ns / each_ns, counted)))
    return float(seen)


_SMALLEST_PERCENT = 0.2
"""Smallest percent of a row. Own choice: a smaller row is of no use to a reader."""


def without_the_smallest(whole: Mapping[Place, Projected]) -> dict[Place, Projected]:
    """Return the same time in fewer places: small ones are added to the row of their part."""
    limit = _SMALLEST_PERCENT / 100.0 * sum(one.ns for one in whole.values())
    joined: dict[Place, Projected] = {}
    for place, one in whole.items():
        small = place.what is not None and one.ns < limit
        key = replace(place, what=None, file=None, line=None) if small else place
        joined[key] = joined[key].together(one) if key in joined else one
    return joined


def divided_by_lines(
    whole: Mapping[Place, Projected], shares: Mapping[Place, Mapping[Place, float]]
) -> dict[Place, Projected]:
    """Return the same time, measured or projected, with the time of lines at their own places."""
    divided: dict[Place, Projected] = {}
    for place, one in whole.items():
        lines = shares.get(place, {})
        rest = {place: max(0.0, 1.0 - sum(lines.values()))}
        for own, share in (*rest.items(), *lines.items()):
            if share <= 0:
                continue
            part = one.share(share)
            divided[own] = divided[own].together(part) if own in divided else part
    return divided


def _rows(
    whole: Mapping[Place, Projected], shares: Shares, lines: Mapping[Place, list[CallbackLine]]
) -> list[RunPart]:
    """Return the rows; a callback's is at the line of its own file that ran longest."""
    places = without_the_smallest(divided_by_lines(whole, shares))
    whole_ns = sum(one.ns for one in places.values())
    rows = []
    for place, one in places.items():
        if one.ns > 0:
            of_any_loop = replace(place, loop_id=None)
            met = lines.get(of_any_loop, ()) if place.part == "epoch_end" else ()
            own = (line.line for line in met if line.file == place.file)
            rows.append(_part(replace(place, line=next(own, place.line)), one, whole_ns))
    return sorted(rows, key=lambda row: (RUN_PARTS.index(row.part), -row.seconds))


def _whole(
    seen: Mapping[Place, int], amounts: Amounts, projection: Projection | None
) -> dict[Place, Projected]:
    whole = {place: Projected.seen(ns, amounts.count.get(place)) for place, ns in seen.items()}
    if projection is None:
        return whole
    if projection.scope != "run":
        return dict(projection.places)
    # Never less than was seen: an epoch slower than others did take that long.
    for place, one in projection.places.items():
        known = whole.get(place)
        whole[place] = known if known is not None and known.ns > one.ns else one
    return whole


def _part(place: Place, one: Projected, whole_ns: float) -> RunPart:
    assert place.part is not None

    def percent(ns: float) -> float:
        total = whole_ns - one.ns + max(0.0, ns)
        return 100.0 * max(0.0, ns) / total if total > 0 else 0.0

    low, high = one.limits_ns
    return RunPart(
        part=place.part,
        seconds=one.ns / 1e9,
        percent=100.0 * one.ns / whole_ns,
        basis="projected" if one.projected else "measured",
        ci95_percent=(percent(low), percent(high)) if one.projected else None,
        count=one.count,
        what=place.what,
        file=place.file,
        line=place.line,
        loop_id=place.loop_id,
    )


def _epoch_counts(
    projection: Projection | None, last: RecordedLoop | None, epochs: Epochs, step: Projected | None
) -> tuple[float | None, int | None]:
    """Return the epochs that were seen, and those that were planned in all calls of a `fit`.

    A loop around it may plan more calls than were seen. Only the first call's number is known;
    where more were seen, later ones were given more.
    """
    if last is None:
        return None, None
    if projection is not None:
        seen = float(epochs.ends_seen) if epochs.steps_ns else None
        return projection.epochs_seen or seen, projection.epochs_planned
    seen = epochs_taken(epochs, last, step)
    if last.keras is None or last.keras.epochs is None:
        return seen, None
    alike = last.keras.epochs * max(epochs.trainings, last.planned_rounds or 1)
    return seen, max(alike, round(seen or 0))
