"""Rounds of a `fit`, and if a training was under way when the run was ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pipediag.measures.run.amounts import Amounts
from pipediag.measures.run.epochs import Projected, projected
from pipediag.measures.run.places import PIPEDIAG, Place, Spent, own_ns
from pipediag.session.ledger import BETWEEN_ROUNDS, FURTHER_ROUNDS
from pipediag.session.recorded_loops import RecordedLoop


@dataclass(frozen=True)
class Rounds:
    """Rounds of the loop around the training that was stopped."""

    calls: int = 1
    """Calls of its `fit` in the whole run, as planned; 1 where that is not known."""
    left: int = 0
    """Calls after the one that was stopped."""
    others: dict[Place, Projected] = field(default_factory=dict)
    """The whole of places that come in each round."""
    not_seen: list[str] = field(default_factory=list)


def rounds_of(spent: Sequence[Spent], loop: RecordedLoop, amounts: Amounts) -> Rounds:
    """Rounds seen to their end tell of those to come; the first one builds what the others use."""
    if loop.keras is None:
        return Rounds()
    fits = _fits(spent, loop, with_steps=True)
    planned = loop.planned_rounds
    if planned is None or len(fits) > planned:
        return Rounds(not_seen=[FURTHER_ROUNDS] if len(fits) > 1 else [])
    if planned == 1:
        return Rounds()
    left = planned - len(fits)
    # The last one may have been stopped before its first step.
    entered = _fits(spent, loop, with_steps=False)
    if len(entered) < 2:
        return Rounds(planned, left, not_seen=[BETWEEN_ROUNDS] if left else [])
    begun = [min(one.start_ns for one in spent if one.fit == fit) for fit in entered]
    ended = [max(one.end_ns for one in spent if one.fit == fit) for fit in entered]
    trains = len(fits) == len(entered)
    others: dict[Place, Projected] = {}
    for place, stretches in _by_place(spent).items():
        *whole, stopped = _by_round(stretches, begun)
        # The projection of the training that was stopped holds what lies within its `fit`.
        within = trains and any(
            one.start_ns < end for mine, end in zip(whole, ended, strict=False) for one in mine
        )
        tell = whole[1:] or whole
        if len(whole) == 1 and place.part == "compile":
            # What the round that was stopped has not traced anew, none of those to come will.
            tell = [stopped]
        to_come = planned - len(whole) - (within or bool(stopped))
        again = _again(place, stretches, tell, to_come, amounts)
        if again is not None:
            others[place] = again
    return Rounds(planned, left, others)


def _by_place(spent: Iterable[Spent]) -> dict[Place, list[Spent]]:
    places: dict[Place, list[Spent]] = {}
    for one in spent:
        if one.place != PIPEDIAG:
            places.setdefault(one.place, []).append(one)
    return places


def _by_round(stretches: Sequence[Spent], begun: Sequence[int]) -> list[list[Spent]]:
    """Return the stretches of each round, which lasts from its `fit` to the next one."""
    rounds: list[list[Spent]] = [[] for _ in begun]
    for one in stretches:
        number = bisect_right(begun, one.start_ns) - 1
        if number >= 0:
            rounds[number].append(one)
    return rounds


def _fits(spent: Sequence[Spent], loop: RecordedLoop, *, with_steps: bool) -> list[int]:
    """Return calls of the loop's `fit` in order: those that trained, or all."""
    called = ("fit", loop.file, loop.line)
    fits = [
        one.fit
        for one in spent
        if one.fit is not None
        and (
            (one.place.part == "steps" and one.place.loop_id == loop.id)
            or (
                not with_steps
                and one.span is not None
                and (one.span.kind, one.span.file, one.span.line) == called
            )
        )
    ]
    return list(dict.fromkeys(fits))


def _again(
    place: Place,
    here: Sequence[Spent],
    tell: Sequence[Sequence[Spent]],
    to_come: int,
    amounts: Amounts,
) -> Projected | None:
    """Return the whole of a place with the rounds to come, which some that were seen stand for."""
    whole_ns, took = sum(one.ns for one in here), amounts.ns.get(place, 0)
    rounds_ns = [sum(one.ns for one in stretches) for stretches in tell]
    if to_come <= 0 or not whole_ns or not sum(rounds_ns):
        return None
    each = sum(len({one.time for one in stretches}) for stretches in tell) / len(tell)
    count = amounts.count.get(place)
    # What hooks can't tell apart is divided in `amounts`, and is in no stretch by itself.
    again = projected(rounds_ns, to_come).share(took / whole_ns).plus_ns(took)
    return replace(again, count=None if count is None else round(count + each * to_come))


_LEAVING_NS = 1_000_000_000
"""Own choice: what an exception takes from a step to the end of the script, with a callback or two
that it passes. A script that does something behind its training does it for longer."""


def in_its_training(spent: Sequence[Spent]) -> bool:
    """Return True if the training that ran last was not over when the run was: hardly anything
    follows its steps but what lies in its `fit`, or waits for its next batch."""
    numbers = [number for number, one in enumerate(spent) if one.place.part == "steps"]
    if not numbers:
        return False
    steps, start = spent[numbers[-1]], ("epoch_start", spent[numbers[-1]].place.loop_id)
    behind = [
        one
        for one in spent[numbers[-1] + 1 :]
        if (one.fit is None or one.fit != steps.fit)
        and (one.place.part, one.place.loop_id) != start
    ]
    return own_ns(behind) <= _LEAVING_NS
