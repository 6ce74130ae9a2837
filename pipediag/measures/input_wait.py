"""The share of the step in which the consumer waits for input, by every method that the run allows.

- native: step minus gap, from tf.data's own gap times, no profiler running. Where there are none
  (distributed iterators, autotune off), the time inside Python's `next`.
- trace: time in GetNext while no device computes, from the profile.
- differential: what the step loses when one batch is handed out again and again.

Gap times are used where they agree with the repeated batch. Where that says more, beyond both
intervals, the truth lies between: what the pipeline computes meanwhile slows the loop and not
GetNext, but repeated rows stay in the caches. Then the wait by gap times counts together with the
CPU time of the pipeline's Python, up to what the repeated batch says; threads of tf.data that keep
half a CPU busy next to a model on the same CPUs explain all of it. Where steps are traced or
compiled, a repeated batch says nothing, as nothing is compiled for it any more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipediag.estimates import Floats, Measured, clearly_apart, resampled_means
from pipediag.facts.limits import INPUT_WAIT, on_other_sides
from pipediag.facts.machine import missed_cores
from pipediag.facts.python_callables import data_cores
from pipediag.measures.steps import (
    COMPILED_PERCENT,
    FEWEST_STEPS,
    ConsumerAlone,
    blocks_of,
    gap_waits,
    next_waits,
)
from pipediag.session.loops import InputWait
from pipediag.session.model import Host
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedBlock, Recording
from pipediag.trace.steps import StepSplit
from pipediag.vocabulary import Contention, InputMethod

WARM_ROWS_PERCENT = 28.0
"""The most that a step gets shorter on a repeated batch because its rows stay in the caches, as
measured on the labelled scripts whose input threads are all but idle."""

PIPELINE_CPU_PERCENT = 50.0
"""CPU use of the threads that make the input, of one CPU, from which they slow a consumer on the
same CPUs. Own choice: on the labelled scripts warm rows explain a shorter step up to 31, and caches
obtained what the repeated batch promises from 80 on."""

PIPELINE_COMPUTES_PERCENT = 25.0
"""Percent of a step that the pipeline's operations take, below which busy threads of tf.data are
not the pipeline's, but those of a metric over a dataset of its own. Own choice."""

MOST_TAKEN = 2.0
"""So many times as much CPU, at most, threads are thought to take without other programs."""

BESIDE: dict[Contention, str] = {
    "python": "Python functions of the pipeline used the CPU",
    "cpu": "Input threads used the CPUs",
}
"""Threads that compute beside the step, in words."""


def settle_input_wait(
    native: Measured | None,
    split: StepSplit | None,
    alone: ConsumerAlone | None,
    contention: Contention | None,
    *,
    python_percent: float = 0.0,
    compiled: Measured | None = None,
) -> tuple[InputWait, Measured | None]:
    """Return the section of the session, and the share that the breakdown uses, if any.

    `native` is by tf.data's own gap times, `split` the profile's steps, `alone` the consumer on a
    repeated batch; `python_percent` the CPU time of the pipeline's Python, in percent of the step,
    and `compiled` what steps take to be compiled for new lengths.
    """
    trace, compiles = None, compiled is not None
    if split is not None and len(split.ns):
        columns = (split.column("input_wait"), split.durations_ns)
        trace = _share(np.column_stack(columns).astype(float))
        compile_percent = 100.0 * split.column("compile").sum() / split.durations_ns.sum()
        compiles |= bool(compile_percent >= COMPILED_PERCENT)
    usable = alone.share if alone is not None and not compiles else None
    chosen, method, doubt = _chosen(native, trace, usable, contention, python_percent)
    apart = usable is not None and native is not None and clearly_apart(native, usable)
    difference = doubt
    if doubt is None and native is not None and usable is not None:
        if method == "differential" and contention is not None:
            difference = (
                f"Input takes between {native.percent:.0f} % of the step (by tf.data's gap times) "
                f"and {usable.percent:.0f} % (by a repeated batch). "
                f"{BESIDE[contention]} meanwhile."
            )
        elif apart:
            difference = (
                f"With a repeated batch, the step is {usable.percent:.0f} % shorter, but by "
                f"tf.data's gap times it waits for input {native.percent:.0f} % of the time. The "
                "gap times are used."
            )
    summary = InputWait(
        native_percent=native.percent if native else None,
        native_ci95_percent=native.interval if native else None,
        trace_percent=trace.percent if trace else None,
        method=method,
        contention=contention,
        contested_by_percent=usable.percent if usable and apart and method == "native" else None,
        disagreement=difference,
        unsettled=doubt is not None,
    )
    return summary, chosen


_Choice = tuple[Measured | None, InputMethod, str | None]
"""The share, its method, and why it is doubtful, if it is."""


def _chosen(
    native: Measured | None,
    trace: Measured | None,
    repeated: Measured | None,
    contention: Contention | None,
    python_percent: float,
) -> _Choice:
    if native is None and repeated is not None:
        return _without_gap_times(repeated, trace, contention)
    if native is None:
        return trace, "trace" if trace is not None else "none", None
    if repeated is None or contention is None or not repeated.is_clearly_above(native):
        return native, "native", None
    if contention == "python":
        # Not more than the CPU time that the pipeline's Python took on other threads.
        repeated = Measured(
            min(repeated.percent, native.percent + python_percent),
            np.minimum(repeated.draws, native.draws + python_percent),
        )
    return repeated, "differential", None


def _without_gap_times(
    repeated: Measured, trace: Measured | None, contention: Contention | None
) -> _Choice:
    """Choose the repeated batch, or the profile where warm rows explain what it is shorter.

    A repeated batch shows what the step costs without its input, but its rows also stay in the
    caches. The profile shows when the loop stood in GetNext, but the profiler slows the loop down,
    which hides some of the wait. Where the two fall on different sides of a limit that is said.
    """
    if (
        trace is None
        or contention is not None
        or not clearly_apart(repeated, trace)
        or not on_other_sides(repeated.percent, trace.percent)
    ):
        return repeated, "differential", None
    apart = (
        f"With a repeated batch, the step is {repeated.percent:.0f} % shorter, but in the profile "
        f"the loop waits for input {trace.percent:.0f} % of the time, and this TensorFlow has no "
        "gap times to decide between the two"
    )
    if trace.percent < repeated.percent <= WARM_ROWS_PERCENT:
        doubt = (
            f"{apart}: repeated rows stay in the CPU's caches, which alone makes steps up to "
            f"{WARM_ROWS_PERCENT:.0f} % shorter, so the profile is used."
        )
        return trace, "trace", doubt
    return repeated, "differential", f"{apart}: the repeated batch is used."


def native_input_wait(recording: Recording, loop: RecordedLoop) -> Measured | None:
    """Return the share by gap times, or else by the time in Python's `next`; None without either.

    The mean wait over the mean step of the same steps, clipped at 0: the two clocks of a gap and a
    step may differ by microseconds.
    """
    blocks, batches = blocks_of(recording, loop, "baseline"), loop.batches_per_call

    def rows(waits_of: Callable[[RecordedBlock, int], tuple[Floats, slice]]) -> Floats:
        """Return rows of (wait, step) in milliseconds per batch."""
        found = [np.empty((0, 2))]
        for block in blocks:
            waits, steps = waits_of(block, batches)
            durations_ns = np.array(block.durations_ns[steps], dtype=float)
            found.append(np.column_stack((waits, durations_ns / 1e6 / batches)))
        return np.concatenate(found)

    gaps, nexts = rows(gap_waits), rows(next_waits)
    # Of the fewest steps that are a measurement one has no gap where the loop ends with them.
    if len(gaps) >= FEWEST_STEPS - any(block.last_gap_unknown for block in blocks):
        return _share(gaps)
    return _share(nexts) if len(nexts) >= FEWEST_STEPS else None


def contention_of(
    host: Host | None,
    step_ms: float,
    *,
    python_percent: float,
    accelerated: bool,
    pipeline_ms: float | None = None,
) -> Contention | None:
    """Return what computes in parallel with the training loop and may slow it, if anything.

    `host` is of the baseline, and of a mean step `python_percent` is the CPU time of the pipeline's
    Python, `pipeline_ms` what its operations take; `accelerated` models compute on no CPU.
    """
    if python_percent >= INPUT_WAIT.value:
        return "python"
    idles = pipeline_ms is not None and 100.0 * pipeline_ms < PIPELINE_COMPUTES_PERCENT * step_ms
    use, others = 100.0 * data_cores(host), missed_cores(host)
    if host is not None and others is not None:
        # So much more a thread would take on CPUs without other programs.
        left = host.cores_allowed - others
        use *= min(host.cores_allowed / left, MOST_TAKEN) if left > 0 else MOST_TAKEN
    if not accelerated and not idles and use >= PIPELINE_CPU_PERCENT:
        return "cpu"
    return None


def _share(rows: Floats) -> Measured:
    """Return the percent from rows of (wait, step)."""
    means = rows.mean(axis=0)
    drawn = resampled_means(rows)
    return Measured(
        float(np.clip(100.0 * means[0] / means[1], 0.0, 100.0)),
        (100.0 * drawn[:, 0] / drawn[:, 1]).clip(0.0, 100.0),
    )
