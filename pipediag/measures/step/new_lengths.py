"""What it takes to build a step anew for each length of its batches, by the clock.

XLA traces nothing for such a length, so no call tells of it, and a profile of a few steps may hold
none that builds. A repeated batch is of one length, for which all is built by then: what a step
takes more than on it is building, as far as it is no wait for the batch.
"""

from __future__ import annotations

import numpy as np

from pipediag.facts.step import lengths_vary
from pipediag.measures.building import Building
from pipediag.measures.recorded_windows import step_ms, steps_ns
from pipediag.measures.step.differential import ConsumerAlone
from pipediag.measures.step.input_share import Measured
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline

COMPILED_PERCENT = 5.0
"""Of the step, from which on it counts. Own choice, equal to the limit below which input wait is
fine."""

FASTEST_PERCENT = 25.0
ALIKE = 1.5
"""Where so many of the steps take hardly longer than on a repeated batch, nothing slows all of
them, as a fight for CPUs or for the interpreter lock does. Own choices."""

TRACED_PART = 0.75
"""Where at least that part of the measured steps has traced a function, each does. Own choice."""


def compiled_for_lengths(
    timeline: Timeline,
    recording: Recording,
    loop: RecordedLoop,
    native: Measured | None,
    alone: ConsumerAlone | None,
) -> Measured | None:
    """That share of the step; None where nothing shows it.

    Args:
        timeline: of the run, with what was traced in it.
        recording: of the same run.
        loop: whose steps they are.
        native: the input wait by tf.data's own gap times.
        alone: the step on a repeated batch.
    """
    if native is None or alone is None:
        return None
    if not _each_traces(timeline, recording, loop) and not _some_compile(recording, loop, alone):
        return None
    percent = alone.differential.input_share_percent - native.percent
    if percent < COMPILED_PERCENT:
        return None
    return Measured(percent, (alone.share_draws - native.draws).clip(min=0.0))


def _each_traces(timeline: Timeline, recording: Recording, loop: RecordedLoop) -> bool:
    """What the warm-up has traced is in no measured step."""
    building, steps = Building(timeline), steps_ns(recording, loop, "baseline")
    traced = sum(building.is_in(start, ns) for start, ns in steps.items())
    return traced > 0 and traced >= TRACED_PART * len(steps)


def _some_compile(recording: Recording, loop: RecordedLoop, alone: ConsumerAlone) -> bool:
    keras = loop.keras
    if keras is None or not keras.jit_compile or not lengths_vary(loop.element_spec or ""):
        return False
    fastest_ms = np.percentile(step_ms(recording, loop, "baseline"), FASTEST_PERCENT)
    return bool(fastest_ms <= ALIKE * alone.differential.step_ms)
