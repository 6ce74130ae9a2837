"""Which of the script's training loops is diagnosed, and why that one."""

from __future__ import annotations

from pathlib import PurePath

from pipediag.measures.loop.loops import cost_s, diagnosed_loop
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.settings import WantedLoop

_MOST_NAMED = 8


def chosen_loop(
    recording: Recording, wanted: WantedLoop | None
) -> tuple[RecordedLoop | None, list[str]]:
    """The loop, or None where none is as it is wanted; and notes that say which was chosen.

    Args:
        wanted: the line that `--loop` gives, or `longest`, which is what is chosen anyway.
    """
    training = [loop for loop in recording.loops if loop.role == "training"]
    if isinstance(wanted, int):
        at_line = [loop for loop in training if loop.line == wanted]
        loop = diagnosed_loop(recording, at_line)
        return loop, _of_line(training, loop, wanted)
    loop = diagnosed_loop(recording, training)
    if loop is None:
        return None, []
    if wanted is None and len(training) == 1 and recording.outcome == "stopped":
        return loop, _of_first(loop)
    return loop, _of_longest(recording, training, loop)


def _of_line(training: list[RecordedLoop], loop: RecordedLoop | None, wanted: int) -> list[str]:
    if loop is None and training:
        return [
            f"No training loop begins at line {wanted}, as --loop asks, so nothing was diagnosed. "
            f"Training loops were seen at {_places(training)}: give the line of one of these."
        ]
    if loop is None or len(training) < 2:
        return []
    others = [one for one in training if one is not loop]
    return [
        f"The training loop at {_place(loop)} is the one that --loop asks for. Others were seen at "
        f"{_places(others)}."
    ]


def _of_first(loop: RecordedLoop) -> list[str]:
    """Nothing was seen of what comes after the loop that the script was stopped in."""
    if not loop.followed_by:
        return []
    places = list(dict.fromkeys(PurePath(place).name for place in loop.followed_by))
    return [
        f"By its source the script trains again at {_named(places)}, behind the loop at "
        f"{_place(loop)} that it was stopped in: `--loop longest` lets it go on and diagnoses the "
        "longest of all."
    ]


def _of_longest(
    recording: Recording, training: list[RecordedLoop], loop: RecordedLoop
) -> list[str]:
    others = [one for one in training if one is not loop]
    if not others:
        return []
    return [
        f"Of {len(training)} training loops the one at {_place(loop)} is diagnosed: it takes most, "
        f"{cost_s(recording, loop):.3g} s, of those that could be measured. Others were seen at "
        f"{_places(others)}; `--loop LINE` takes another."
    ]


def _places(loops: list[RecordedLoop]) -> str:
    return _named(list(dict.fromkeys(map(_place, loops))))


def _named(named: list[str]) -> str:
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more


def _place(loop: RecordedLoop) -> str:
    if loop.file is None or loop.line is None:
        return "a line that is not known"
    return f"{PurePath(loop.file).name}:{loop.line}"
