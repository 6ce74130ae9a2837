"""The run's ledger: each second of it in exactly one place."""

from __future__ import annotations

from typing import Literal

from pipediag.session.record import Interval, Record
from pipediag.vocabulary import PartBasis, RunPartName, RunScope

OWN_LINE = "the script's own line"
"""Value of `RunPart.what` where code runs that is in no function."""
IN_FRAMEWORK = ", in a framework's code"
"""End of a row's `RunPart.what` where a framework's code ran for that line."""
FURTHER_ROUNDS = "further rounds of an outer loop, whose number the source does not state"
BETWEEN_ROUNDS = "what else happens between two rounds of the outer loop"
"""Entry of `Run.not_seen` where the run takes longer than its projection says."""
MAY_END_SOONER = "whether a callback ends it sooner"
"""Entry of `Run.not_seen` where the run may take less than its projection says."""
COMES_ONCE = "what happens once: start-up, and everything before and after training"
"""Entry of `Run.not_seen` where the ledger is of an epoch, or of 1,000 steps."""
AN_EPOCHS_END = "the end of an epoch, with its validation and callbacks"
EVALUATIONS = "evaluations within the training, which came while pipediag held it"
AFTERWARDS = "what the script does after this training"
"""Entry of `Run.not_seen` where the script was stopped before its code after the training ran."""
EVALUATING_LOOP = "a loop that evaluates"
VALIDATION = "validation in `fit`"
IN_CALLBACK = "in the callback"
"""Part of `RunPart.what` where a callback calls `evaluate` or `predict`."""
MAKING = "making the iterator"
"""Value of `RunPart.what` for a part of an epoch's start that is not a wait for a batch."""
PAUSE = "one pause as the last epoch's iterator was destroyed, not extrapolated"
"""Value of `RunPart.what` for time that came once among the boundaries of epochs."""
PAUSES = "pauses as the iterators of epochs are destroyed"
"""Value of `RunPart.what` for the time that several ends of epochs take beyond the shortest: number
and length are chance (`facts.run.Pauses`), so no headline has them."""
READING = "reading a data set"
"""Value of `RunPart.what` where a loop takes data before a training."""
EXITING = "exit"
"""Value of `RunPart.what` where Python and the framework end, after the script's last line."""


def callback_words(name: str) -> str:
    """Return `RunPart.what` of a row in which a callback of that class runs."""
    return f"the callback {name}"


class RunPart(Record):
    """One place that the run's time goes to."""

    part: RunPartName
    seconds: float
    percent: float
    """Percent of the whole that the ledger is about; all parts together are 100."""
    basis: PartBasis
    """`measured`: it was seen; `projected`: it follows from what was seen of it."""
    ci95_percent: Interval | None = None
    """95 % interval of the percent; None where it was timed once."""
    count: int | None = None
    """Number of times that it came, or is projected to come."""
    what: str | None = None
    """Description for the middle of a sentence; None for the part as a whole."""
    file: str | None = None
    line: int | None = None
    loop_id: str | None = None


class RunSpan(Record):
    """One stretch of the run, as it was seen."""

    part: RunPartName | None
    """Part of the run; None for pipediag's own work, which is in no part."""
    start_ms: float
    """Start by the clock of windows and steps; negative before the recording began."""
    duration_ms: float
    what: str | None = None


class EpochSeen(Record):
    """One epoch of a training, seen to its end and without any of pipediag's own work."""

    number: int
    """Number of the epoch in its training, counted from 0."""
    end_ms: float
    """End by the clock of windows, steps and host samples."""
    steps_ms: float


class CallbackLine(Record):
    """A line of the script's that ran in a callback at an epoch's end, or in an evaluating loop."""

    what: str
    """`RunPart.what` of the row."""
    loop_line: int | None = None
    """Line of the loop that evaluates."""
    file: str
    line: int
    function: str
    percent: float
    """Percent of the samples of that callback, or loop."""
    in_framework: bool = False
    """True if this line was running a framework's code."""
    code: str | None = None


class Run(Record):
    scope: RunScope
    """The ledger's whole: `epoch` or `1000_steps` if nothing says how long it trains."""
    total_s: float
    """Time that was seen, without what pipediag took."""
    projected_total_s: float | None = None
    """Time of the whole, where it was not seen to its end; the parts add up to it."""
    projected_missing: str | None = None
    pipediag_s: float
    """Time that pipediag itself took: its start, the profile, trials."""
    epochs_seen: float | None = None
    """Number of epochs of the diagnosed loop, in all calls of its `fit`; may be a fraction."""
    epochs_planned: int | None = None
    epochs_given: bool = False
    """True if the user gave their number (`--epochs`), as the script does not show it."""
    not_seen: list[str] = []
    """Parts of the whole that were never seen and that the ledger lacks, in words."""
    parts: list[RunPart]
    seen: list[RunPart] = []
    """All that was seen, in percent of `total_s`, where the ledger is about less than the run."""
    callback_lines: list[CallbackLine] = []
    """Lines of each callback at the ends of epochs, and evaluating loop, that took most."""
    spans: list[RunSpan] = []
    """Stretches that were seen, one after the other; of very many the longest."""
    whole_epochs: list[EpochSeen] = []
    """Epochs of the last training, without its first; of very many, some at even distances."""

    @property
    def whole_s(self) -> float:
        """Return the seconds that all percents refer to."""
        return self.total_s if self.projected_total_s is None else self.projected_total_s

    @property
    def epochs(self) -> float | None:
        """Return the epochs of the whole: as planned where it is projected, else as seen."""
        if self.projected_total_s is not None:
            return self.epochs_planned or self.epochs_seen
        return self.epochs_seen or self.epochs_planned

    def seconds_of(self, part: RunPartName) -> float:
        """Return the seconds of all rows of a part."""
        return sum(one.seconds for one in self.parts if one.part == part)

    def percent_of(self, part: RunPartName) -> float:
        """Return the percent of the whole that all rows of a part take."""
        return sum(one.percent for one in self.parts if one.part == part)


class RunGain(Record):
    """Gain of the whole run from a change that makes one part of it faster."""

    speedup: float
    ci95: Interval | None = None
    before_s: float
    after_s: float
    basis: Literal["measured", "at most"]
    """Basis of the gain of the part that gets faster; how long that part is, the ledger says."""
    scope: RunScope
    """The whole that the seconds are for."""
    once_s: float | None = None
    """Additional seconds for tracing and compiling the changed step, once for each model that is
    built, in `after_s` of a run; may be negative. None where that was not measured."""
    once_ci95_s: Interval | None = None
    ends_seen: bool = True
    """False where the seconds are projected and no end of an epoch was seen."""
