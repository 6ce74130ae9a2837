"""A training that was stopped, projected to its planned end: epoch by epoch, part by part."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipediag.facts.step import shapes_vary
from pipediag.measures.loops import PAUSE_SEEN_ONCE, cache_filled_meanwhile
from pipediag.measures.run.amounts import (
    FEWEST_FOR_INTERVAL,
    Amounts,
    Projected,
    as_often,
    in_doubt,
    projected,
    starts_of,
    steps_of,
)
from pipediag.measures.run.epochs import Epochs, first_iterator_ns
from pipediag.measures.run.places import PIPEDIAG, Place, Spent, own_ns
from pipediag.session.ledger import (
    AFTERWARDS,
    AN_EPOCHS_END,
    BETWEEN_ROUNDS,
    COMES_ONCE,
    FURTHER_ROUNDS,
    MAKING,
    MAY_END_SOONER,
    PAUSE,
    PAUSES,
)
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.vocabulary import RunScope


@dataclass(frozen=True)
class Rounds:
    """Rounds of the loop around the training that was stopped."""

    calls: int = 1
    """Calls of its `fit` in the whole run, as planned; 1 where that is not known."""
    left: int = 0
    """Calls after the one that was stopped."""
    others: dict[Place, Projected] = field(default_factory=dict)
    """Time of places that come in each round, in the whole run."""
    not_seen: list[str] = field(default_factory=list)


def rounds_of(spent: Sequence[Spent], loop: RecordedLoop, amounts: Amounts) -> Rounds:
    """Return the rounds: those to come are projected from those seen to their end, and the first
    one builds what the others use."""
    if loop.keras is None:
        return Rounds()
    trained = (one.fit for one in spent if one.place == steps_of(loop) and one.fit is not None)
    fits, planned = list(dict.fromkeys(trained)), loop.planned_rounds
    if planned is None or len(fits) > planned:
        return Rounds(not_seen=[FURTHER_ROUNDS])
    left = planned - max(1, len(fits))
    if len(fits) < 2:
        return Rounds(planned, left, not_seen=[BETWEEN_ROUNDS] if left else [])
    begun = [min(one.start_ns for one in spent if one.fit == fit) for fit in fits]
    # Stretches of each place before the first `fit`, and from each to the next one.
    places: dict[Place, list[list[Spent]]] = {}
    for one in spent:
        if one.place != PIPEDIAG:
            in_rounds = places.setdefault(one.place, [[] for _ in range(len(begun) + 1)])
            in_rounds[bisect_right(begun, one.start_ns)].append(one)
    others = {place: _in_all_rounds(place, places[place], planned, amounts) for place in places}
    return Rounds(planned, left, {place: one for place, one in others.items() if one is not None})


def _in_all_rounds(
    place: Place, stretches: Sequence[Sequence[Spent]], planned: int, amounts: Amounts
) -> Projected | None:
    """Return the time of a place where each round that was not seen to its end takes what those
    took that were; None where it comes in no such round."""
    _, *whole, stopped = stretches
    # If the second round has not traced it again, later rounds will not either.
    tell = whole[1:] or ([stopped] if place.part == "compile" else whole)
    rounds_ns = [sum(one.ns for one in here) for here in tell]
    whole_ns = sum(one.ns for here in stretches for one in here)
    if not sum(rounds_ns):
        return None
    to_come, took, count = planned - len(whole), amounts.ns.get(place, 0), amounts.count.get(place)
    # Time that hooks can't separate is divided in `amounts`, and is in no stretch by itself.
    part = took / whole_ns
    over = took - round(part * sum(one.ns for one in stopped))
    again = projected(rounds_ns, to_come).share(part).plus_ns(over)
    each = sum(len({one.time for one in here}) for here in tell) / len(tell)
    more = each * to_come - len({one.time for one in stopped})
    return replace(again, count=None if count is None else round(count + more))


_LEAVING_NS = 1_000_000_000
"""Most time that an exception takes from a step to the end of the script, with a callback or two
that it passes. Own choice. A script that does something after its training does it for longer."""


def in_its_training(spent: Sequence[Spent]) -> bool:
    """Return True if the training that ran last was not over when the run was: hardly anything
    follows its steps except within its `fit`, or waiting for its next batch."""
    numbers = [number for number, one in enumerate(spent) if one.place.part == "steps"]
    if not numbers:
        return False
    steps, start = spent[numbers[-1]], ("epoch_start", spent[numbers[-1]].place.loop_id)
    after = [
        one
        for one in spent[numbers[-1] + 1 :]
        if (one.fit is None or one.fit != steps.fit)
        and (one.place.part, one.place.loop_id) != start
    ]
    return own_ns(after) <= _LEAVING_NS


def project(
    recording: Recording,
    loop: RecordedLoop,
    epochs: Epochs,
    amounts: Amounts,
    step: Projected,
    rounds: Rounds,
) -> Projection:
    """Project the loop that was stopped; all places before it stay as they were."""
    fills = any(op.kind == "shuffle" for op in recording.upstream(loop.root_op_id))
    projection = Projection(loop, epochs, amounts, step, fills)
    length = _batches_of_an_epoch(recording, loop, epochs, step)
    filled = cache_filled_meanwhile(recording, loop) is not None
    # Where a first call had a limit of its own, later epochs have another length.
    plan = None if filled or loop.exceeds_data_steps else projection.plan(length)
    if plan is None:
        projection.without_plan(length, filled=filled)
    else:
        projection.to_its_end(*plan, rounds)
    return projection


def _batches_of_an_epoch(
    recording: Recording, loop: RecordedLoop, epochs: Epochs, step: Projected
) -> int | None:
    """Return the batches of its data, or fewer where its own loop was seen to leave epochs early,
    as with `break` or `zip(range(100), dataset)`; None where the data does not tell its length."""
    root = next((op for op in recording.operations if op.id == loop.root_op_id), None)
    held = root.cardinality if root is not None else None
    length, ended = loop.data_steps or held, loop.iterators - 1 - loop.iterators_in_trials
    if length is None or length <= 0 or loop.exceeds_data_steps:
        return None
    if loop.kind == "keras" or ended < 1 or not step.ns or loop.steps >= ended * length:
        return length
    of_last = epochs.steps_ns[-1] / step.ns * loop.batches_per_call
    return max(1, round((loop.steps - of_last) / ended))


@dataclass
class Projection:
    """The whole of a run, projected from the training that was stopped, and the places whose time
    differs from what was seen."""

    loop: RecordedLoop
    epochs: Epochs
    amounts: Amounts
    step: Projected
    fills: bool
    """True if a shuffle may fill in each epoch."""
    scope: RunScope = "run"
    """The whole that is projected; if it is not `run`, it consists of these places alone."""
    places: dict[Place, Projected] = field(default_factory=dict)
    longer_ns: int = 0
    """Time that the first epoch's steps took more than those of others; it comes once."""
    missing: str | None = None
    """Reason why the whole is not the run."""
    not_seen: list[str] = field(default_factory=list)
    epochs_planned: int | None = None
    epochs_seen: float | None = None
    """Epochs seen, with those in rounds that were over; None where their number is not known."""

    def plan(self, length: int | None) -> tuple[int, float, bool] | None:
        """Return epochs, calls of a step in all, and True if the number of epochs is known.

        If the length of the data is not known, an epoch has as many steps as the first one whose
        data ended, or is as long as those seen to their end.
        """
        loop, epochs = self.loop, self.epochs
        if loop.from_python:
            rounds = loop.planned_rounds
            known = rounds is not None and rounds >= loop.steps
            return (1, rounds / loop.batches_per_call, False) if known and rounds else None
        given = loop.keras.epochs if loop.keras else loop.planned_rounds
        if not loop.keras and given and max(loop.iterators, len(epochs.steps_ns)) > given:
            # The script made more of them.
            given = None
        if given and length and not loop.keras:
            return given, given * length / loop.batches_per_call, True
        if loop.planned_steps:
            per_epoch = loop.keras.steps_per_epoch if loop.keras else None
            count = given or 1 if per_epoch else 1
            return count, loop.planned_steps / loop.batches_per_call, bool(per_epoch)
        if given and loop.epoch_steps:
            return given, given * loop.epoch_steps / loop.batches_per_call, True
        # The first epoch may have filled a cache.
        whole = epochs.steps_ns[1:-1] or epochs.steps_ns[:-1] or epochs.whole_ns
        if not given or not whole or self.step.ns <= 0:
            return None
        return given, given * (sum(whole) / len(whole)) / self.step.ns, True

    def to_its_end(self, count: int, steps: float, known: bool, rounds: Rounds) -> None:
        """Project so many epochs and calls of a step, and the rounds around them."""
        before = self.epochs.before_count
        planned = count * rounds.calls if rounds.calls > 1 else before + count
        self.epochs_planned = planned if known else None
        epoch_ns, stretches = self.step.ns * steps / count, self.epochs.steps_ns
        if known and stretches and epoch_ns:
            self.epochs_seen = before + self.epochs.ends_seen + min(1.0, stretches[-1] / epoch_ns)
        self._add_epochs(count, steps)
        self._add_tracing(steps)
        before_ns = self._before()
        for place, one in self.places.items():
            again = one.share(1 + rounds.left)
            again = replace(again, count=one.count and one.count * (1 + rounds.left))
            self.places[place] = again.plus_ns(before_ns.get(place, 0))
        place = steps_of(self.loop)
        whole = self.places[place]
        self.places[place] = replace(whole.plus_ns(self.longer_ns), count=whole.count)
        self.places = {**rounds.others, **self.places}
        self.not_seen += [*rounds.not_seen, AFTERWARDS]
        if known and self.loop.keras and "EarlyStopping" in self.loop.keras.deciding_callbacks:
            self.not_seen.append(MAY_END_SOONER)

    def without_plan(self, length: int | None, *, filled: bool) -> None:
        """Project one epoch, or 1,000 steps where its length is not known either."""
        steps = (length or 1000) / self.loop.batches_per_call
        if length:
            self.scope, self.missing = "epoch", _ONE_EPOCH
            self._add_epochs(1, steps)
        else:
            self.scope, self.missing = "1000_steps", _SOME_STEPS
            self._scale(steps)
        if filled:
            self.missing = _FILLED
        self._add_tracing(steps)
        self.not_seen.append(COMES_ONCE)

    def _add_epochs(self, count: int, steps: float) -> None:
        calls, epochs = steps / count, self.epochs
        counted = self.loop.steps / self.loop.batches_per_call / calls
        if epochs.are_interrupted_within(self.loop, calls * self.step.ns, epochs_counted=counted):
            self._scale(steps)
            return
        steady = replace(self.step.share(steps), count=round(steps))
        in_epochs = self.scope == "epoch" or self.epochs_planned is not None
        whole = self._in_epochs(steady, count) if in_epochs else None
        self.places[steps_of(self.loop)] = whole or steady
        starts = self._starts()
        later = epochs.later_starts_ns or starts[1:] or starts
        if self.scope == "run":
            waits = projected(later, count - 1).plus_ns(starts[0])
            waits = replace(waits, count=count, projected=count > 1)
            if later is starts and not self.fills:
                # What the first epoch waited for need not come again.
                waits = replace(waits, limits_ns=(starts[0], waits.limits_ns[1]))
        else:
            waits = projected(later, count)
        self.places[starts_of(self.loop)] = waits
        if not epochs.usual_ends:
            self.not_seen.append(AN_EPOCHS_END)
        for place, times in epochs.ends_ns.items():
            one = projected(times, count)
            if place.what == PAUSES:
                one = replace(one, count=None)
            elif place.what == MAKING and self.scope == "run":
                first_ns = first_iterator_ns(place, epochs, self.amounts)
                later_ns = projected(times or [first_ns], count - 1)
                one = replace(later_ns.plus_ns(first_ns), count=count)
            elif place in self.amounts.count and epochs.trainings == 1:
                one = replace(one, count=round(epochs.came[place] * count))
            self.places[place] = one
        if any(place.what == PAUSE for place in self.amounts.ns):
            self.not_seen.append(PAUSE_SEEN_ONCE)

    def _in_epochs(self, steady: Projected, count: int) -> Projected | None:
        """Return the time of whole epochs, with slow steps that the steady step does not show."""
        if not self.epochs.whole_ns or steady.ns <= 0:
            return None
        # Where a step asks for an epoch's first batch, its wait is a place of its own.
        waits = [] if self.epochs.starts_ns else self.amounts.waits_ns.get(self.loop.id, [])
        wait = sum(waits) / len(waits) if waits else 0.0
        whole = projected([max(0, round(ns - wait)) for ns in self.epochs.whole_ns], count)
        few = len(self.epochs.whole_ns) < FEWEST_FOR_INTERVAL
        scattered = steady.share(whole.ns / steady.ns) if few else whole
        first = self.amounts.out_of_first_ns.get(self.loop.id, 0)
        first = first if self.epochs.trainings == 1 else round(wait)
        self.longer_ns = self.epochs.longer_at_first_ns(whole.ns / count, first)
        return Projected(whole.ns, steady.count, scattered.limits_ns)

    def _scale(self, steps: float) -> None:
        """Project what came among the steps that were seen, in proportion to their number."""
        self.places[steps_of(self.loop)] = replace(self.step.share(steps), count=round(steps))
        seen = self._steps_seen()
        if seen <= 0:
            return
        first, *later = self._starts()
        once = first if self.scope == "run" else 0
        waits = as_often(later, steps / seen).plus_ns(once)
        self.places[starts_of(self.loop)] = replace(waits, projected=bool(later))
        for place, times in () if self.epochs.ends_are_earlier else self.epochs.ends_ns.items():
            self.places[place] = as_often(times, steps / seen)

    def _add_tracing(self, steps: float) -> None:
        """Project the tracing that comes again and again among the steps."""
        seen = self._steps_seen()
        if seen <= 0:
            return
        times = steps / seen
        if shapes_vary(self.loop):
            # New lengths come about as the logarithm of the steps (16 in 51 steps, 26 in 375).
            times = math.log1p(steps) / math.log1p(seen)
        for place, share in self.epochs.built_again.items():
            took = self.amounts.ns.get(place, 0)
            # What earlier trainings took is added to that of this one later.
            mine = max(0.0, (1.0 - share) * took - self._before().get(place, 0))
            once = round(mine) if self.scope == "run" else 0
            more = share * took * times
            whole = in_doubt(more, None).plus_ns(once)
            count = self.amounts.count.get(place)
            counted = None if count is None or not took else round(count * whole.ns / took)
            self.places[place] = replace(whole, count=counted)

    def _starts(self) -> list[int]:
        """Return the waits for first batches, also where the steps themselves ask for these."""
        if self.epochs.starts_ns:
            return self.epochs.starts_ns
        later = self.amounts.waits_ns.get(self.loop.id, [])
        return [max(0, self.amounts.ns.get(starts_of(self.loop), 0) - sum(later)), *later]

    def _before(self) -> dict[Place, int]:
        """Return the time of other trainings, with the mean wait for each of their epochs."""
        before, steps = dict(self.epochs.before_ns), steps_of(self.loop)
        waits = self.amounts.waits_ns.get(self.loop.id)
        if not self.epochs.starts_ns and waits and steps in before:
            mean = sum(waits) / len(waits)
            waited = min(before[steps], round(self.epochs.before_count * mean))
            before[steps] -= waited
            before[starts_of(self.loop)] = before.get(starts_of(self.loop), 0) + waited
        return before

    def _steps_seen(self) -> float:
        """Return the number of step calls in the training that goes on."""
        steps = steps_of(self.loop)
        seen_ns = self.amounts.ns.get(steps, 0) - self._before().get(steps, 0)
        return seen_ns / self.step.ns if self.step.ns else 0.0


_FILLED = (
    "The script was stopped in the epoch that fills its cache, so the time of later epochs, which "
    "read the cache, is not known."
)
_ONE_EPOCH = "The script was stopped, and its number of epochs is not known: this is one of them."
_SOME_STEPS = (
    "The script was stopped, and the number of steps in an epoch, or of epochs, is not known: "
    "these are 1,000 steps."
)
