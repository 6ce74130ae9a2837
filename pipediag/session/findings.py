"""What was concluded of a run: its verdict, and what a rule has found."""

from __future__ import annotations

from pipediag.session.edits import Edit
from pipediag.session.ledger import RunGain
from pipediag.session.patches import Patch
from pipediag.session.record import LikelyRange, Record
from pipediag.session.source import SourceExcerpt
from pipediag.session.trials import NOT_TRIED, Trial
from pipediag.vocabulary import (
    Bottleneck,
    Confidence,
    EffectOnResults,
    FindingSeverity,
    FindingStatus,
    FindingSubject,
    RunPartName,
    Scalar,
    VerdictSeverity,
)


class Verdict(Record):
    bottleneck: Bottleneck
    severity: VerdictSeverity
    summary: str
    """One sentence for a person in a hurry."""
    confidence: Confidence
    reasons: list[str]
    next_steps: list[str] = []
    """What to do, most useful first."""
    file: str | None = None
    line: int | None = None
    op_id: str | None = None
    where: RunPartName | None = None
    """The part of the run that costs most of what could be had back; None without a ledger."""
    where_percent: float | None = None
    """Of the whole that the ledger speaks of; what it takes to exit is none of it."""
    where_file: str | None = None
    where_line: int | None = None
    source: SourceExcerpt | None = None
    """The line that the verdict or its first advice is about, with those around it; None where
    there is none, where its file was changed since, and with `--no-source`."""
    python_source: SourceExcerpt | None = None
    """The line of Python that the named operation calls and that was seen running most, with those
    around it, where it stands elsewhere; None as `source` is."""


class Finding(Record):
    """What one rule says of this run."""

    rule: str
    title: str
    status: FindingStatus
    severity: FindingSeverity
    subject: FindingSubject = "speed"
    part: RunPartName = "steps"
    """The part of the run that its advice makes faster; its speed-ups are of that part, or of the
    whole loop where the advice is about the waits between its epochs."""
    file: str | None = None
    line: int | None = None
    op_id: str | None = None
    evidence: dict[str, Scalar] = {}
    """The numbers it rests on; units are in the names."""
    advice: str
    effect_on_results: EffectOnResults | None = None
    condition: str | None = None
    """What must hold for the edit to keep the results right, and what only the user can know, as a
    clause: `if the generator yields the same data in every epoch`; None where nothing must."""
    predicted_speedup: float | None = None
    predicted_range: LikelyRange | None = None
    """How far off predictions of that size were where they were measured; None beside an
    accelerator, where none were, and for parts of the run other than its steps."""
    predicted_by_profile_alone: bool = False
    """Whether tf.data told nothing of the running pipeline that it is a prediction for: it is then
    too high where an operation waits rather than computes."""
    speedup_at_most: float | None = None
    """Where nothing is predicted: the step over the step without the classes of its time that the
    advice could free, so no prediction but a limit."""
    saved_s: float | None = None
    """Seconds that the advice takes off the whole that the ledger speaks of: as predicted where a
    speed-up is, at most otherwise. Where a part can go entirely, only this says how much that is;
    None where it follows from a speed-up of all of the part."""
    for_run: RunGain | None = None
    """What the speed-up comes to in all of the run; None where that is not known."""
    edit: Edit | None = None
    """What the advice would change, in a form that a trial can apply."""
    patch: Patch | None = None
    """The edit as a change of the source, or why there is none; None where there is no edit, where
    a trial refuted it, and where the run was to leave source out (`--no-source`)."""
    trial: Trial = NOT_TRIED
    needs_first: str | None = None
    """A rule whose finding must be dealt with before this one."""

    @property
    def about_results(self) -> bool:
        """Whether it is about what the training learns, so that a trial only tells its price."""
        return self.subject in ("correctness", "quality")

    @property
    def dropped(self) -> bool:
        """Whether a trial showed that its advice buys nothing, and that is all it was about."""
        return self.trial.state == "refuted" and not self.about_results
