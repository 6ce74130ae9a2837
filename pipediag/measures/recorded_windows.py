"""The recorded windows as arrays and rows, and which of their steps trace a function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.estimates import Floats
from pipediag.session.loops import StepRow, Window
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedBlock, RecordedWindow, Recording
from pipediag.session.timeline import Span, Timeline
from pipediag.vocabulary import SpanKind, WindowKind

WindowNs = tuple[int, int]
_NANOSECOND_DIGITS = 6
"""Digits of milliseconds; further ones come from the arithmetic and not from a clock."""


def windows_of(recording: Recording, loop: RecordedLoop, kind: WindowKind) -> list[RecordedWindow]:
    """The loop's windows of one kind, oldest first."""
    return [
        window for window in recording.windows if window.loop_id == loop.id and window.kind == kind
    ]


def blocks_of(recording: Recording, loop: RecordedLoop, kind: WindowKind) -> list[RecordedBlock]:
    """The blocks of those windows that hold a step, oldest first."""
    return [
        block
        for window in windows_of(recording, loop, kind)
        for block in window.blocks
        if block.durations_ns
    ]


def step_ms(recording: Recording, loop: RecordedLoop, kind: WindowKind) -> Floats:
    """Return milliseconds per batch of every step in those windows, in order. An interval of one
    call with several batches (`steps_per_execution`) is divided by them."""
    durations = [d for block in blocks_of(recording, loop, kind) for d in block.durations_ns]
    return np.array(durations, dtype=float) / 1e6 / loop.batches_per_call


def steps_ns(recording: Recording, loop: RecordedLoop, *kinds: WindowKind) -> dict[int, int]:
    """Nanoseconds of every recorded interval in those windows, by its begin: one may be a call of
    several batches."""
    return {
        start: duration
        for kind in kinds
        for block in blocks_of(recording, loop, kind)
        for start, duration in zip(block.starts_ns, block.durations_ns, strict=True)
    }


def spans_ns(recording: Recording, loop: RecordedLoop, kind: WindowKind) -> list[WindowNs]:
    """Begin and end of each block of steps in those windows: what lies between two blocks, such as
    an epoch's end with its validation, is no part of them."""
    return [
        (block.starts_ns[0], block.starts_ns[-1] + block.durations_ns[-1])
        for block in blocks_of(recording, loop, kind)
    ]


def steps_with_gaps(block: RecordedBlock, batches: int) -> slice:
    """The block's steps that gap times cover: the last ones, as tf.data keeps the last 100, but
    for one whose last gap is not known."""
    end = len(block.durations_ns) - block.last_gap_unknown
    covered = min(len(_gaps_of_whole_steps(block, batches)) // batches, max(0, end))
    return slice(end - covered, end)


def _gaps_of_whole_steps(block: RecordedBlock, batches: int) -> list[int]:
    of_last = batches - 1 if block.last_gap_unknown else 0
    return block.gaps_us[: len(block.gaps_us) - of_last]


def gap_waits_ms(block: RecordedBlock, batches: int) -> Floats:
    """Return milliseconds of input wait per batch by tf.data's gap times: step minus gap, one for
    each of the `steps_with_gaps`. Some may be negative, as the two clocks differ."""
    steps = steps_with_gaps(block, batches)
    covered = steps.stop - steps.start
    if covered == 0:
        return np.empty(0)
    known = _gaps_of_whole_steps(block, batches)
    gaps = np.array(known[-covered * batches :], dtype=float).reshape(covered, batches)
    durations = np.array(block.durations_ns[steps], dtype=float)
    waits: Floats = (durations / 1e6 - gaps.sum(axis=1) / 1e3) / batches
    return waits


def next_waits_ms(block: RecordedBlock, batches: int) -> Floats | None:
    """Milliseconds per batch inside the iterator's `next`; None where Python does not call it."""
    if len(block.waits_ns) != len(block.durations_ns):
        return None
    return np.array(block.waits_ns, dtype=float) / 1e6 / batches


def waits_ms(block: RecordedBlock, batches: int) -> tuple[Floats, slice]:
    """Return milliseconds of input wait per batch, inside `next` or else by gap times, and of which
    steps."""
    inside = next_waits_ms(block, batches)
    if inside is not None:
        return inside, slice(None)
    return gap_waits_ms(block, batches), steps_with_gaps(block, batches)


def window_rows(recording: Recording) -> list[Window]:
    """Every window of the run, oldest first."""
    return [
        Window(
            kind=window.kind,
            loop_id=window.loop_id,
            start_ms=(window.start_ns - recording.started_ns) / 1e6,
            duration_ms=(window.end_ns - window.start_ns) / 1e6,
            steps=sum(len(block.durations_ns) for block in window.blocks),
            complete=window.complete,
            reason=window.reason,
        )
        for window in recording.windows
    ]


def step_rows(recording: Recording, loop: RecordedLoop) -> list[StepRow]:
    """Every recorded interval of the diagnosed loop, in order; durations are whole calls here."""
    rows: list[StepRow] = []
    for window in recording.windows:
        if window.loop_id != loop.id:
            continue
        for number, block in enumerate(window.blocks):
            for start, duration, wait in _with_waits(block, loop.batches_per_call):
                rows.append(
                    StepRow(
                        index=len(rows),
                        window=window.kind,
                        block=number,
                        start_ms=(start - recording.started_ns) / 1e6,
                        duration_ms=duration / 1e6,
                        input_wait_ms=wait,
                        batches=loop.batches_per_call,
                    )
                )
    return rows


def _with_waits(block: RecordedBlock, batches: int) -> Iterator[tuple[int, int, float | None]]:
    waits: list[float | None] = [None] * len(block.durations_ns)
    measured, steps = waits_ms(block, batches)
    waits[steps] = [max(0.0, round(float(wait) * batches, _NANOSECOND_DIGITS)) for wait in measured]
    return zip(block.starts_ns, block.durations_ns, waits, strict=True)


@dataclass(frozen=True)
class Missing:
    """Stands in for a section of the session that could not be measured."""

    reason: str
    """Why, as a sentence; the session keeps it as `<section>_missing`."""


_BUILDS: frozenset[SpanKind] = frozenset({"first_call", "tracing"})


class Building:
    """All that was traced in a run, as its timeline tells."""

    def __init__(self, timeline: Timeline) -> None:
        self.spans: list[Span] = [one for one in timeline.spans if one.kind in _BUILDS]
        ends_ns = [one.end_ns for one in self.spans if one.end_ns is not None]
        self._ends_ns: NDArray[np.int64] = np.sort(np.array(ends_ns, dtype=np.int64))

    def is_in(self, start_ns: int, step_ns: int) -> bool:
        """Return True if such a call ends in that step, before which it begins a little."""
        moments = (start_ns, start_ns + step_ns)
        ended_before, ended = np.searchsorted(self._ends_ns, moments, "right")
        return bool(ended > ended_before)
