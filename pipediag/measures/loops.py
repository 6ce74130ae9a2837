"""The loops of the script, and which of them is diagnosed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import PurePath
from statistics import fmean

import numpy as np

from pipediag.measures.loop_time import cache_filled_meanwhile, seen_s, time_missing, time_of
from pipediag.measures.pipeline import written_pipeline
from pipediag.measures.recorded_windows import step_ms
from pipediag.measures.steps import FEWEST_STEPS
from pipediag.session.loops import Evaluation, KerasUse, Loop, NestedCall, Softmax
from pipediag.session.record import shared_fields
from pipediag.session.recorded_loops import RecordedEvaluation, RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.settings import WantedLoop
from pipediag.vocabulary import EVALUATING


def diagnosed_loop(
    recording: Recording, among: Iterable[RecordedLoop] | None = None
) -> RecordedLoop | None:
    """The training loop that costs most, of all or `among` some; None where nothing trained.

    A loop with a baseline goes before one without: an expensive loop that was cut off in its
    warm-up has nothing to diagnose. Among equals the first.
    """
    loops = recording.loops if among is None else among
    training = [loop for loop in loops if loop.role == "training"]

    def rank(loop: RecordedLoop) -> tuple[bool, float]:
        measured = len(step_ms(recording, loop, "baseline")) >= FEWEST_STEPS
        return measured, cost_s(recording, loop)

    return max(training, key=rank, default=None)


def cost_s(recording: Recording, loop: RecordedLoop) -> float:
    """Return the seconds of the whole loop: as projected, or as far as it was seen."""
    projected = projected_s(recording, loop)
    if projected is None:
        return max(seen_s(loop), _by_its_data_s(recording, loop))
    return projected


def _by_its_data_s(recording: Recording, loop: RecordedLoop) -> float:
    """Of a loop of the script's own that goes on, or was cut off: its epochs, as the source and the
    length of its data tell; 0 where they don't, or where it was over."""
    lasts = [one.last_ns or 0 for one in recording.loops if one.role == "training"]
    in_it = recording.outcome in ("running", "stopped")
    cut_off = in_it and loop.last_ns == max(lasts, default=None)
    median = median_step_ms(recording, loop)
    if not cut_off or median is None or not loop.data_steps or not loop.planned_rounds:
        return 0.0
    return median * loop.data_steps * loop.planned_rounds / 1000.0


def projected_s(recording: Recording, loop: RecordedLoop) -> float | None:
    """Planned steps times their mean, with start and ends of epochs as far as they were seen.

    No less than the loop has taken already. None where the script does not say how many steps it
    plans, and where those that were measured are of an epoch unlike the others.
    """
    if loop.planned_steps is None or cache_filled_meanwhile(recording, loop) is not None:
        return None
    time = time_of(recording, loop)
    if time is not None and loop.asked_ns is not None and loop.warm_ns is not None:
        return max(seen_s(loop), (loop.warm_ns - loop.asked_ns) / 1e9 + time.total_s)
    median = median_step_ms(recording, loop)
    if median is None:
        return None
    return max(seen_s(loop), median * loop.planned_steps / 1000.0)


def median_step_ms(recording: Recording, loop: RecordedLoop) -> float | None:
    """Per batch, from the baseline, or else from the warm-up, or else from the elapsed time.

    The last two include the first step.
    """
    for kind in ("baseline", "warmup"):
        samples = step_ms(recording, loop, kind)
        if len(samples):
            return float(np.median(samples))
    return loop.elapsed_ns / 1e6 / loop.steps if loop.steps else None


def loop_rows(recording: Recording, diagnosed: RecordedLoop | None) -> list[Loop]:
    """Every loop of the script, in the order in which they began."""
    return [_row(recording, loop, loop is diagnosed) for loop in recording.loops]


def _keras(recording: Recording, loop: RecordedLoop) -> KerasUse | None:
    if loop.keras is None:
        return None
    known = KerasUse.model_validate(asdict(loop.keras))
    clocked = [one for one in recording.stacks if one.loop_id == loop.id and one.steps_ns > 0]
    steps_ns = sum(one.steps_ns for one in clocked)
    if not clocked:
        return known
    took_ns = {
        callback.name: sum(one.callbacks_ns.get(callback.name, 0) for one in clocked)
        for callback in known.callbacks
    }
    callbacks = [
        callback.model_copy(update={"step_percent": 100.0 * took_ns[callback.name] / steps_ns})
        for callback in known.callbacks
    ]
    return known.model_copy(update={"callbacks": callbacks})


def _row(recording: Recording, loop: RecordedLoop, diagnosed: bool) -> Loop:
    time = time_of(recording, loop) if loop.role == "training" else None
    filled = cache_filled_meanwhile(recording, loop)
    own = {
        "diagnosed": diagnosed,
        "elapsed_s": seen_s(loop),
        "median_step_ms": median_step_ms(recording, loop),
        "projected_s": projected_s(recording, loop),
        "time": time,
        "time_missing": time_missing(loop) if time is None and loop.role == "training" else None,
        "keras": _keras(recording, loop),
        "nested": _nested(loop),
        "softmaxes": [shared_fields(Softmax, one) for one in loop.softmaxes],
        "filled_cache_op_id": filled.id if filled is not None else None,
        "pipeline": written_pipeline(recording, loop) if loop.role in EVALUATING else None,
        "evaluation": _evaluation(loop.evaluation),
    }
    return Loop.model_validate({**shared_fields(Loop, loop), **own})


def _nested(loop: RecordedLoop) -> list[NestedCall]:
    return [
        NestedCall(
            what=call.what,
            file=call.file,
            line=call.line,
            percent=min(100.0, 100.0 * call.elapsed_ns / loop.elapsed_ns),
            ms=call.elapsed_ns / 1e6 / call.count,
        )
        for call in loop.nested
        if call.count and loop.elapsed_ns
    ]


def _evaluation(seen: RecordedEvaluation | None) -> Evaluation | None:
    """Per batch. A gap lies between two requests, so that it holds no waiting for either."""
    if seen is None or not seen.batches:
        return None
    step = seen.elapsed_ns / 1e6 / seen.batches
    gap = fmean(seen.gaps_us) / 1e3 if seen.gaps_us else None
    return Evaluation(
        steps=seen.batches, step_ms=step, consumer_ms=None if gap is None else min(gap, step)
    )


_MOST_NAMED = 8


def chosen_loop(
    recording: Recording, wanted: WantedLoop | None
) -> tuple[RecordedLoop | None, list[str]]:
    """Return the loop to diagnose, or None, and a note where several or none were to choose from.

    Args:
        wanted: the line that `--loop` gives, or `longest`, which is what is chosen anyway.
    """
    training = [loop for loop in recording.loops if loop.role == "training"]
    at_line = isinstance(wanted, int)
    among = [loop for loop in training if not at_line or loop.line == wanted]
    loop = diagnosed_loop(recording, among)
    others = _named(_place(one) for one in training if one is not loop)
    note = None
    if loop is None:
        if training:
            note = (
                f"No training loop begins at line {wanted}, as --loop asks, so nothing was "
                f"diagnosed. Training loops were seen at {others}: give the line of one of these."
            )
    elif len(training) > 1 and at_line:
        note = (
            f"The training loop at {_place(loop)} is the one that --loop asks for. Others were "
            f"seen at {others}."
        )
    elif len(training) > 1:
        note = (
            f"Of {len(training)} training loops the one at {_place(loop)} is diagnosed: it takes "
            f"most, {cost_s(recording, loop):.3g} s, of those that could be measured. Others were "
            f"seen at {others}; `--loop LINE` takes another."
        )
    elif wanted is None and recording.outcome == "stopped" and loop.followed_by:
        # Nothing was seen of what comes after the loop that the script was stopped in.
        places = _named(PurePath(place).name for place in loop.followed_by)
        note = (
            f"By its source the script trains again at {places}, behind the loop at "
            f"{_place(loop)} that it was stopped in: `--loop longest` lets it go on and diagnoses "
            "the longest of all."
        )
    return loop, [note] if note is not None else []


def _named(places: Iterable[str]) -> str:
    named = list(dict.fromkeys(places))
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more


def _place(loop: RecordedLoop) -> str:
    if loop.file is None or loop.line is None:
        return "a line that is not known"
    return f"{PurePath(loop.file).name}:{loop.line}"
