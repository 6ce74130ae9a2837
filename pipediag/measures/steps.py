"""The step: recorded windows as arrays and rows, its time in each of them, and its classes.

A repeated batch shows what the step costs when input is free (DS-Analyzer's synthetic data). It is
of one length: what a step of another length takes longer is tracing and compiling, as far as it is
no wait for the batch. XLA traces nothing for a new length, so no call tells of it, and a profile of
a few steps may hold none that compiles.

The step is split into nine classes that add up to it. Input wait comes from the clock without a
profiler. The rest is split in the proportions of the profile's own consumer time: the profiler
lengthens steps, so its milliseconds are no measure, but the proportions are the best that there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from pipediag.estimates import Floats, Measured, interval, resampled_means, resampled_medians
from pipediag.facts.step import lengths_vary
from pipediag.session.loops import Ceiling, Differential, Perturbation, Share, StepRow, Steps
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedBlock, RecordedWindow, Recording
from pipediag.session.timeline import Span, Timeline
from pipediag.trace.steps import StepSplit
from pipediag.vocabulary import SpanKind, StepClass, WindowKind

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
    """Return milliseconds per batch of every step; a call of several batches is divided by them."""
    durations = [d for block in blocks_of(recording, loop, kind) for d in block.durations_ns]
    return np.array(durations, dtype=float) / 1e6 / loop.batches_per_call


def steps_ns(recording: Recording, loop: RecordedLoop, kind: WindowKind) -> dict[int, int]:
    """Return nanoseconds of every recorded interval in those windows, by its begin."""
    return {
        start: duration
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
    """Return milliseconds per batch inside Python's `next`, if it is called, and of which steps."""
    if len(block.waits_ns) != len(block.durations_ns):
        return np.empty(0), slice(0)
    return np.array(block.waits_ns, dtype=float) / 1e6 / batches, slice(None)


def input_waits(block: RecordedBlock, batches: int) -> tuple[Floats, slice]:
    """Return milliseconds of input wait per batch, in `next` or by gaps, and of which steps."""
    inside, steps = next_waits(block, batches)
    return (inside, steps) if len(inside) else gap_waits(block, batches)


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
        waited[steps] = (measured * batches).round(_NANOSECOND_DIGITS).clip(min=0.0).tolist()
        rows += [
            StepRow(
                index=index,
                window=kind,
                block=number,
                start_ms=(start - recording.started_ns) / 1e6,
                duration_ms=duration / 1e6,
                input_wait_ms=wait,
                batches=batches,
            )
            for index, (start, duration, wait) in enumerate(
                zip(block.starts_ns, block.durations_ns, waited, strict=True), len(rows)
            )
        ]
    return rows


@dataclass(frozen=True)
class Missing:
    """Stands in for a section of the session that could not be measured."""

    reason: str
    """Reason, as a sentence; the session keeps it as `<section>_missing`."""


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


def measure_steps(recording: Recording, loop: RecordedLoop) -> Steps | None:
    """Return step times of the loop's baseline, in milliseconds per batch; None without one."""
    samples = step_ms(recording, loop, "baseline")
    if not len(samples):
        return None
    mean = float(samples.mean())
    warmed = windows_of(recording, loop, "warmup")
    settled = [window.stable for window in warmed if window.stable is not None]
    return Steps(
        count=len(samples),
        warmup_count=len(step_ms(recording, loop, "warmup")),
        mean_ms=mean,
        median_ms=float(np.median(samples)),
        p95_ms=float(np.percentile(samples, 95)),
        ci95_ms=interval(resampled_medians(samples)),
        examples_per_s=1000.0 * loop.batch_size / mean if loop.batch_size else None,
        batch_size=loop.batch_size,
        first_step_ms=_ms(loop.first_step_ns),
        fill_ms=_ms(loop.fill_ns),
        retraces=len(loop.retrace_steps),
        trace_count=loop.trace_count,
        boundaries=loop.boundaries,
        batches_per_call=loop.batches_per_call,
        stable=settled[-1] if settled else True,
        samples_ms=[round(float(sample), 6) for sample in samples],
    )


def steps_missing(recording: Recording, loop: RecordedLoop) -> str:
    """Return why there is no baseline step."""
    warmed = windows_of(recording, loop, "warmup")
    if not warmed:
        return "The training loop was not measured: no measuring window was opened for it."
    steps = len(step_ms(recording, loop, "warmup"))
    reason = warmed[-1].reason or "the loop ended first"
    return f"Only {steps} steps were seen, all of them warm-up: {reason}."


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


def measure_perturbation(recording: Recording, loop: RecordedLoop) -> Perturbation | None:
    """Return mean profiled step over mean baseline step, by one clock; None without a baseline."""
    baseline = step_ms(recording, loop, "baseline")
    if not len(baseline):
        return None
    step, profiled = float(baseline.mean()), step_ms(recording, loop, "profile")
    if not len(profiled):
        return Perturbation(
            baseline_step_ms=step,
            profiled_step_ms=None,
            ratio=None,
            missing=profile_missing(recording, loop),
        )
    slow = float(profiled.mean())
    return Perturbation(baseline_step_ms=step, profiled_step_ms=slow, ratio=slow / step)


def profile_missing(recording: Recording, loop: RecordedLoop) -> str:
    """Return why there is no profile of this loop."""
    windows = windows_of(recording, loop, "profile")
    reason = windows[-1].reason if windows else None
    return f"No step was profiled: {reason or 'the loop ended first'}."


FEWEST_STEPS = 5
_OTHER_SEED = 31


@dataclass(frozen=True)
class ConsumerAlone:
    """The step on a repeated batch, and by how much of the baseline's it is shorter."""

    differential: Differential
    share: Measured


def measure_differential(recording: Recording, loop: RecordedLoop) -> ConsumerAlone | None:
    """Return None without enough steps on a repeated batch or in the baseline. Compares means, not
    medians: a pipeline that delivers in bursts has a fast median."""
    alone = step_ms(recording, loop, "repeat")
    baseline = step_ms(recording, loop, "baseline")
    if len(alone) < FEWEST_STEPS or len(baseline) < FEWEST_STEPS:
        return None
    alone_draws = resampled_means(alone, seed=_OTHER_SEED)
    draws = 100.0 * (1.0 - alone_draws / resampled_means(baseline))
    percent = max(0.0, 100.0 * (1.0 - float(alone.mean() / baseline.mean())))
    differential = Differential(
        step_ms=float(alone.mean()),
        ci95_ms=interval(alone_draws),
        steps=len(alone),
        input_share_percent=percent,
    )
    return ConsumerAlone(differential, Measured(percent, draws.clip(min=0.0)))


COMPILED_PERCENT = 5.0
"""Percent of the step from which on compiling counts. Own choice, as the limit on input wait."""

FASTEST_PERCENT = 25.0
ALIKE = 1.5
"""Percent of the steps, and multiple of the time on a repeated batch: if so many steps take no
longer than that, nothing slows all of them, as a fight for CPUs or for the GIL does. Own
choices."""

TRACED_PART = 0.75
"""Part of the measured steps that traced, from which each one counts as tracing. Own choice."""


def compiled_for_lengths(
    timeline: Timeline,
    recording: Recording,
    loop: RecordedLoop,
    native: Measured | None,
    alone: ConsumerAlone | None,
) -> Measured | None:
    """Return the share of the step that compiles for new lengths, by what a repeated batch
    (`alone`) is shorter than gap times (`native`) explain; None where none is seen."""
    if native is None or alone is None:
        return None
    building, steps = Building(timeline), steps_ns(recording, loop, "baseline")
    traced = sum(building.is_in(start, ns) for start, ns in steps.items())
    compiles = traced > 0 and traced >= TRACED_PART * len(steps)
    by_xla = loop.keras is not None and loop.keras.jit_compile
    if not compiles and by_xla and lengths_vary(loop.element_spec or ""):
        fastest_ms = np.percentile(step_ms(recording, loop, "baseline"), FASTEST_PERCENT)
        compiles = bool(fastest_ms <= ALIKE * alone.differential.step_ms)
    percent = alone.share.percent - native.percent
    if not compiles or percent < COMPILED_PERCENT:
        return None
    return Measured(percent, (alone.share.draws - native.draws).clip(min=0.0))


CLASSES: tuple[StepClass, ...] = get_args(StepClass)
CONSUMER_CLASSES: tuple[StepClass, ...] = tuple(c for c in CLASSES if c != "input_wait")

_HUNDREDTHS = 10_000
_PROFILE_SEED = 7


def break_down(
    step_ms: float, input_wait: Measured, split: StepSplit | None, compiled: Measured | None = None
) -> dict[StepClass, Share]:
    """Return milliseconds and percent of the mean step for each class, with 95 % intervals.

    Without profiled steps all consumer time is `unattributed`. `compiled` is what the clock shows
    of steps that are compiled for new lengths. Percents are whole hundredths that add up to 100.
    """
    proportions, drawn = _consumer_proportions(split)
    consumer = 100.0 - input_wait.percent
    percents = dict(zip(CONSUMER_CLASSES, consumer * proportions, strict=True))
    draws = dict(
        zip(CONSUMER_CLASSES, ((100.0 - input_wait.draws)[:, None] * drawn).T, strict=True)
    )
    if compiled is not None:
        percents, draws = _with_compiling(percents, draws, compiled, input_wait)
    percents["input_wait"], draws["input_wait"] = input_wait.percent, input_wait.draws
    rounded = round_to_hundred(np.array([percents[name] for name in CLASSES]))
    return {
        name: Share(
            ms=step_ms * percent / 100.0, percent=percent, ci95_percent=interval(draws[name])
        )
        for name, percent in zip(CLASSES, rounded, strict=True)
    }


def _with_compiling(
    percents: Mapping[StepClass, float],
    draws: Mapping[StepClass, Floats],
    compiled: Measured,
    input_wait: Measured,
) -> tuple[dict[StepClass, float], dict[StepClass, Floats]]:
    """Return the rest of consumer time in the profile's proportions without its compiling."""
    rest = max(0.0, 100.0 - input_wait.percent - compiled.percent)
    known = sum(percent for name, percent in percents.items() if name != "compile")
    factor = rest / known if known else 0.0
    scaled = {name: percent * factor for name, percent in percents.items()}
    drawn = {name: one * factor for name, one in draws.items()}
    scaled["compile"], drawn["compile"] = compiled.percent, compiled.draws
    if not known:
        scaled["unattributed"] = rest
        drawn["unattributed"] = (100.0 - input_wait.draws - compiled.draws).clip(0.0)
    return scaled, drawn


def _consumer_proportions(split: StepSplit | None) -> tuple[Floats, Floats]:
    """Return each class's share of consumer time, shape (8,), and its resamples, (draws, 8)."""
    columns = [split.column(name) for name in CONSUMER_CLASSES] if split is not None else []
    ns = np.column_stack(columns).astype(float) if columns else np.empty((0, 0))
    if not ns.sum():
        only = np.array([float(name == "unattributed") for name in CONSUMER_CLASSES])
        return only, only[None, :]
    drawn = resampled_means(ns, seed=_PROFILE_SEED)
    totals = drawn.sum(axis=1, keepdims=True)
    mean = ns.mean(axis=0)
    return mean / mean.sum(), drawn / np.where(totals > 0, totals, 1.0)


def round_to_hundred(percents: Floats) -> list[float]:
    """Return percents as whole hundredths that add up to 100, by largest remainder."""
    exact = np.clip(percents, 0.0, None) / percents.clip(min=0.0).sum() * _HUNDREDTHS
    whole: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    short = _HUNDREDTHS - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return [int(hundredths) / 100.0 for hundredths in whole]


_LEAST_CONSUMER_PERCENT = 0.1
"""Below it the ceiling is a division by noise: a thousandfold gain would be claimed."""


def measure_ceiling(input_wait: Measured, breakdown: Mapping[StepClass, Share]) -> Ceiling:
    """Return step over consumer time, as the breakdown has them, with a 95 % interval, and the
    largest class of the rest; `unattributed` names no bottleneck."""
    consumer = 100.0 - breakdown["input_wait"].percent
    if consumer < _LEAST_CONSUMER_PERCENT:
        return Ceiling(
            speedup_if_input_free=None,
            next_bottleneck=None,
            missing="The step consists of input wait only, so the speed of the consumer is not "
            "known.",
        )
    named = {
        name: share.percent
        for name, share in breakdown.items()
        if name not in ("input_wait", "unattributed") and share.percent > 0
    }
    draws = 100.0 / np.clip(100.0 - input_wait.draws, _LEAST_CONSUMER_PERCENT, None)
    return Ceiling(
        speedup_if_input_free=100.0 / consumer,
        ci95=interval(draws),
        next_bottleneck=max(named, key=lambda name: named[name], default=None),
    )
