"""The recorded windows as arrays and rows, and which of their steps trace a function."""

from __future__ import annotations

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
    """Return the loop's windows of one kind, oldest first."""
    return [
        window for window in recording.windows if window.loop_id == loop.id and window.kind == kind
    ]


def blocks_of(recording: Recording, loop: RecordedLoop, kind: WindowKind) -> list[RecordedBlock]:
    """Return the blocks of those windows that hold a step, oldest first."""
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
    """Return nanoseconds of every recorded interval in those windows, by its begin: one may be a
    call of several batches."""
    return {
        start: duration
        for kind in kinds
        for block in blocks_of(recording, loop, kind)
        for start, duration in zip(block.starts_ns, block.durations_ns, strict=True)
    }


def spans_ns(recording: Recording, loop: RecordedLoop, kind: WindowKind) -> list[WindowNs]:
    """Return begin and end of each block of steps in those windows: what lies between two blocks,
    such as an epoch's end with its validation, is no part of them."""
    return [
        (block.starts_ns[0], block.starts_ns[-1] + block.durations_ns[-1])
        for block in blocks_of(recording, loop, kind)
    ]


def gap_waits(block: RecordedBlock, batches: int) -> tuple[Floats, slice]:
    """Return milliseconds of input wait per batch by tf.data's gap times: step minus gap, and of
    which steps.

    They cover the last ones, as tf.data keeps the last 100, but for one whose last gap is not
    known. Some waits may be negative, as the two clocks differ.
    """
    end = len(block.durations_ns) - block.last_gap_unknown
    of_last = batches - 1 if block.last_gap_unknown else 0
    known = block.gaps_us[: len(block.gaps_us) - of_last]
    covered = min(len(known) // batches, max(0, end))
    steps = slice(end - covered, end)
    gaps = np.array(known[len(known) - covered * batches :], dtype=float).reshape(covered, batches)
    durations = np.array(block.durations_ns[steps], dtype=float)
    return (durations / 1e6 - gaps.sum(axis=1) / 1e3) / batches, steps


def next_waits(block: RecordedBlock, batches: int) -> tuple[Floats, slice]:
    """Return milliseconds per batch inside the iterator's `next`, and of which steps: of none where
    Python does not call it."""
    if len(block.waits_ns) != len(block.durations_ns):
        return np.empty(0), slice(0)
    return np.array(block.waits_ns, dtype=float) / 1e6 / batches, slice(None)


def input_waits(block: RecordedBlock, batches: int) -> tuple[Floats, slice]:
    """Return milliseconds of input wait per batch, inside `next` or else by gap times, and of which
    steps."""
    inside, steps = next_waits(block, batches)
    return (inside, steps) if len(inside) else gap_waits(block, batches)


def window_rows(recording: Recording) -> list[Window]:
    """Return every window of the run, oldest first."""
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
    """Return every recorded interval of the diagnosed loop; durations are whole calls here."""
    rows: list[StepRow] = []
    batches = loop.batches_per_call
    blocks = [
        (window.kind, number, block)
        for window in recording.windows
        if window.loop_id == loop.id
        for number, block in enumerate(window.blocks)
    ]
    for kind, number, block in blocks:
        waited: list[float | None] = [None] * len(block.durations_ns)
        measured, steps = input_waits(block, batches)
        waited[steps] = [
            max(0.0, round(float(ms) * batches, _NANOSECOND_DIGITS)) for ms in measured
        ]
        for start, duration, wait in zip(block.starts_ns, block.durations_ns, waited, strict=True):
            rows.append(
                StepRow(
                    index=len(rows),
                    window=kind,
                    block=number,
                    start_ms=(start - recording.started_ns) / 1e6,
                    duration_ms=duration / 1e6,
                    input_wait_ms=wait,
                    batches=batches,
                )
            )
    return rows


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
