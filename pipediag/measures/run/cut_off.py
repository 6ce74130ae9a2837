"""Runs that were ended from outside: whether their last training was under way."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.places import Spent, own_ns
from pipediag.measures.run.rounds import Rounds
from pipediag.session.timeline import Timeline

_LEAVING_NS = 1_000_000_000
"""Own choice: what an exception takes from a step to the end of the script, with a callback or two
that it passes. A script that does something behind its training does it for longer."""

_LONGER = 2
"""Own choice: no end of an epoch, or of a round, takes so many times what the longest took that was
seen."""


def in_its_training(timeline: Timeline, spent: Sequence[Spent], epochs: Epochs) -> bool:
    """Whether the training that ran last was not over when the run was.

    A `fit` that returned before was, however few of its epochs it made. A loop of the script's own
    was where what followed it took longer than anything between its epochs.
    """
    number = _last_steps(spent)
    if number is None:
        return False
    steps, behind = spent[number], spent[number + 1 :]
    if steps.fit is not None:
        return _is_open(timeline, steps.fit)
    if any(_starts_epoch_of(one, steps) for one in behind):
        return True
    ends_ns = [sum(times) for times in zip(*epochs.ends_ns.values(), strict=True)]
    return _is_no_longer(own_ns(behind), ends_ns)


def before_its_next_round(rounds: Rounds) -> bool:
    """Whether rounds are left of the loop around a `fit`, and nothing tells that it was left.

    As own loops do, one that breaks off has something behind it that takes longer than what lies
    between its rounds. Where only one was seen, its plan is all that tells.
    """
    if rounds.left <= 0:
        return False
    return not rounds.between_ns or _is_no_longer(rounds.behind_ns, rounds.between_ns)


def _last_steps(spent: Sequence[Spent]) -> int | None:
    numbers = range(len(spent) - 1, -1, -1)
    return next((number for number in numbers if spent[number].place.part == "steps"), None)


def _starts_epoch_of(one: Spent, steps: Spent) -> bool:
    return one.place.part == "epoch_start" and one.place.loop_id == steps.place.loop_id


def _is_no_longer(behind_ns: int, between_ns: Sequence[int]) -> bool:
    return behind_ns <= _LONGER * max(between_ns, default=0) + _LEAVING_NS


def _is_open(timeline: Timeline, fit: int) -> bool:
    """Whether nothing ended that call but what ended the script."""
    ends_ns = {span.id: span.end_ns for span in timeline.spans}
    script = next((span for span in timeline.spans if span.kind == "script"), None)
    ended_ns, script_ns = ends_ns.get(fit), script.end_ns if script is not None else None
    if ended_ns is None:
        return True
    return script_ns is not None and script_ns - ended_ns <= _LEAVING_NS
