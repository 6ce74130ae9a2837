"""Rounds of a `fit`, and if a training was under way when the run was ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.places import PIPEDIAG, Place, Spent, own_ns
from pipediag.session.ledger import BETWEEN_ROUNDS, FURTHER_ROUNDS
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import Timeline

_PARTS_BETWEEN = frozenset({"evaluation", "between_loops"})


@dataclass(frozen=True)
class Again:
    """One place in each round."""

    share: float
    """Part of all that was seen there."""
    count: float
    times: int
    """Rounds to come that hold it, among them one that was stopped before it was over there."""
    begun: float = 0.0
    """The part of that one that was seen."""
    rounds_ns: tuple[int, ...] = ()
    """Time in each of the rounds that stand for them."""

    @property
    def to_come(self) -> float:
        """The rounds to come that hold it, as a number that may be a fraction."""
        return self.times - self.begun


@dataclass(frozen=True)
class Rounds:
    """Rounds of the loop around the training that was stopped."""

    calls: int = 1
    """Calls of its `fit` in the whole run, as planned; 1 where that is not known."""
    left: int = 0
    """Calls after the one that was stopped."""
    others: dict[Place, Again] = field(default_factory=dict)
    not_seen: list[str] = field(default_factory=list)
    between_ns: tuple[int, ...] = ()
    """Time between the end of each `fit` and the next one."""
    behind_ns: int = 0
    """Time behind the last one that was seen."""


def rounds_of(spent: Sequence[Spent], loop: RecordedLoop) -> Rounds:
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
        tail = _tail(spent, entered[-1], left) if entered else {}
        return Rounds(planned, left, tail, not_seen=[BETWEEN_ROUNDS] if left else [])
    begun = [min(one.start_ns for one in spent if one.fit == fit) for fit in entered]
    ended = [max(one.end_ns for one in spent if one.fit == fit) for fit in entered]
    between = [
        own_ns(one for one in spent if end <= one.start_ns < again)
        for end, again in zip(ended, begun[1:], strict=False)
    ]
    trains = len(fits) == len(entered)
    others: dict[Place, Again] = {}
    for place, stretches in _by_place(spent).items():
        *whole, stopped = _by_round(stretches, begun)
        # The projection of the training that was stopped holds what lies within its `fit`.
        projected = trains and any(
            one.start_ns < end for mine, end in zip(whole, ended, strict=False) for one in mine
        )
        tell = whole[1:] or whole
        if len(whole) == 1 and place.part == "compile":
            # What the round that was stopped has not traced anew, none of those to come will.
            tell = [stopped]
        to_come = planned - len(whole) - projected
        again = _again(stretches, tell, to_come, [] if projected else stopped)
        if again is not None:
            others[place] = again
    behind_ns = own_ns(one for one in spent if one.start_ns >= ended[-1])
    return Rounds(planned, left, others, between_ns=tuple(between), behind_ns=behind_ns)


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


def _tail(spent: Sequence[Spent], fit: int, left: int) -> dict[Place, Again]:
    """Return what followed the first training, which each round has at least."""
    ended = max(one.end_ns for one in spent if one.fit == fit)
    tail = {}
    for place, stretches in _by_place(spent).items():
        later = [one for one in stretches if one.start_ns >= ended]
        again = _again(stretches, [later], left) if later and place.part in _PARTS_BETWEEN else None
        if again is not None:
            tail[place] = again
    return tail


def _again(
    here: Sequence[Spent], tell: Sequence[Sequence[Spent]], times: int, now: Sequence[Spent] = ()
) -> Again | None:
    """`now`: what was seen there of a round that is one of those to come as well."""
    whole_ns = sum(one.ns for one in here)
    rounds_ns = tuple(sum(one.ns for one in stretches) for stretches in tell)
    each_ns = sum(rounds_ns) / len(rounds_ns)
    if not whole_ns or not each_ns:
        return None
    count = sum(len({one.time for one in stretches}) for stretches in tell) / len(tell)
    begun = min(1.0, sum(one.ns for one in now) / each_ns) if times else 0.0
    return Again(each_ns / whole_ns, count, times, begun, rounds_ns)


_LEAVING_NS = 1_000_000_000
"""Own choice: what an exception takes from a step to the end of the script, with a callback or two
that it passes. A script that does something behind its training does it for longer."""

_LONGER = 2
"""Own choice: no end of an epoch, or of a round, takes so many times what the longest took that was
seen."""


def in_its_training(timeline: Timeline, spent: Sequence[Spent], epochs: Epochs) -> bool:
    """Return True if the training that ran last was not over when the run was.

    A `fit` that returned before was, however few of its epochs it made. A loop of the script's own
    was where what followed it took longer than anything between its epochs.
    """
    numbers = [number for number, one in enumerate(spent) if one.place.part == "steps"]
    if not numbers:
        return False
    steps, behind = spent[numbers[-1]], spent[numbers[-1] + 1 :]
    if steps.fit is not None:
        return _is_open(timeline, steps.fit)
    start = ("epoch_start", steps.place.loop_id)
    if any((one.place.part, one.place.loop_id) == start for one in behind):
        return True
    ends_ns = [sum(times) for times in zip(*epochs.ends_ns.values(), strict=True)]
    return _is_no_longer(own_ns(behind), ends_ns)


def before_its_next_round(rounds: Rounds) -> bool:
    """Return True if rounds are left of the loop around a `fit`, and nothing tells that it was
    left.

    One that breaks off has something behind it that takes longer than what lies between its rounds.
    Where only one was seen, its plan is all that tells.
    """
    if rounds.left <= 0:
        return False
    return not rounds.between_ns or _is_no_longer(rounds.behind_ns, rounds.between_ns)


def _is_no_longer(behind_ns: int, between_ns: Sequence[int]) -> bool:
    return behind_ns <= _LONGER * max(between_ns, default=0) + _LEAVING_NS


def _is_open(timeline: Timeline, fit: int) -> bool:
    """Return True if nothing ended that call but what ended the script."""
    ends_ns = {span.id: span.end_ns for span in timeline.spans}
    script = next((span for span in timeline.spans if span.kind == "script"), None)
    ended_ns, script_ns = ends_ns.get(fit), script.end_ns if script is not None else None
    if ended_ns is None:
        return True
    return script_ns is not None and script_ns - ended_ns <= _LEAVING_NS
