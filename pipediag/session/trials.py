"""Trials on the user's own pipeline and model, and their results."""

from __future__ import annotations

from typing import Literal

from pipediag.session.ledger import RunGain
from pipediag.session.record import Interval, Record
from pipediag.vocabulary import TrialState

Consumer = Literal["training", "pipeline alone"]
"""Consumer of the batches: the script's own training loop, or nothing, as fast as they came."""
Basis = Literal["step", "epoch", "pipeline", "traces", "pauses"]
"""Basis of a speed-up: measured steps; an epoch's first wait and steps; the pipeline alone, from
which the step's is estimated; or the traces, or pauses as iterators are freed, that are saved, with
the steps."""

WORTHWHILE = 1.03
"""Confirmed: the whole interval lies above; refuted: the whole interval lies below. Blocks of one
and the same pipeline agree within 2 to 5 %, and less than 3 % is not worth an edit."""


class SpeedUp(Record):
    """Measured speed-up of one edit, or of several together."""

    speedup: float | None = None
    """Examples per second with the change divided by those without."""
    ci95: Interval | None = None
    blocks: int | None = None
    """Pairs of blocks that the ratio rests on."""
    basis: Basis | None = None
    """`pipeline`: `speedup` is an estimate, made from `pipeline_speedup`."""
    pipeline_speedup: float | None = None
    """Examples per second of the pipeline alone; only where nothing else was measured."""
    pipeline_ci95: Interval | None = None
    once_s: float | None = None
    """Seconds that tracing and compiling the other step takes once more, not in `speedup`."""
    once_ci95_s: Interval | None = None


class Trial(SpeedUp):
    state: TrialState
    reason: str | None
    """Reason why it was not tried, or what keeps it from being decided."""
    consumer: Consumer | None = None
    traces: int | None = None
    """Number of traces in the trial of a `tf.function` with `reduce_retracing`."""
    same_elements: int | None = None
    """Number of elements before an added cache that were the same in two passes."""
    on_top_of: list[str] = []
    """Ids of confirmed edits with which it was compared in place of the pipeline as written."""
    caveats: list[str] = []
    """Sentences on what the measurement leaves out or changes."""


NOT_TRIED = Trial(state="not_tried", reason="No trial was made.")

NO_BUDGET = "No trials were requested (`--budget 0`)."
"""Reason why a run as a whole has no trials."""


class TrialBlock(Record):
    """Consecutive steps of one variant of the pipeline and the model."""

    arm: str
    """`base`, an edit's id, or several joined by ` + `."""
    round: int
    """Blocks of one round ran one after the other, in random order."""
    examples_per_s: float
    batches: int
    duration_ms: float
    first_step_ms: float | None = None
    """Time before that, from a new iterator to the end of its first step."""


REFUSED_TOGETHER = "They can't be tried together"
"""Begins the reason where a pipeline or model with both edits could not be made."""


class DroppedEdit(Record):
    """A confirmed edit that is left out of the combination."""

    edit: str
    reason: str


class Combined(SpeedUp):
    """All confirmed edits together: the number that heads the report."""

    findings: list[str]
    """Ids of the edits that are in."""
    filling_speedup: float | None = None
    """Speed-up of the epoch that fills a cache, by the other edits."""
    filling_ci95: Interval | None = None
    for_run: RunGain | None = None
    """Gain of the whole run from these edits."""
    dropped: list[DroppedEdit] = []


class PipelineAlone(Record):
    """The pipeline without its consumer: how fast batches come when nothing else runs."""

    step_ms: float
    ci95_ms: Interval | None
    blocks: int


class TrialRun(Record):
    loop_id: str
    consumer: Consumer
    budget_s: float
    given_s: float | None = None
    """Time that the user gave for the trials of all loops, of which this one had `budget_s`."""
    used_s: float
    blocks: list[TrialBlock] = []
    notes: list[str] = []
    iterators_freed: int = 0
    """Iterators of the pipeline as written that were freed after blocks of steps."""
    iterators_paused: int = 0
    """Iterators among these for which TensorFlow waited."""
