"""Conclusions about a run: its verdict, and the findings of rules."""

from __future__ import annotations

from pipediag.session.edits import Edit
from pipediag.session.ledger import RunGain
from pipediag.session.record import Record
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

_ALSO = ", and "


def also(condition: str | None, further: str) -> str:
    """Return a finding's condition with a further one, or that alone."""
    return f"if {further}" if condition is None else f"{condition}{_ALSO}{further}"


def without_its_first(condition: str | None) -> str | None:
    """Return what is left of a condition where two passes over the data of a cache have shown the
    first part of it, that they give the same elements."""
    _, _, further = (condition or "").partition(_ALSO)
    return also(None, further) if further else None


class SourceExcerpt(Record):
    file: str
    line: int
    """The one that is meant."""
    first_line: int
    lines: list[str]


class PatchedFile(Record):
    path: str
    sha256: str
    """Hash of the file's bytes when it was measured: a patch is for that file and no other."""


class LeftOut(Record):
    """A confirmed edit that is not in the patch."""

    edit: str
    reason: str
    snippet: str | None = None
    """Code that does it, to be put where it belongs by hand."""


class Patch(Record):
    """One or more edits as a change of the files in which their calls are written."""

    edits: list[str] = []
    diff: str | None = None
    """Unified; None where no edit could be written down."""
    files: list[PatchedFile] = []
    left_out: list[LeftOut] = []
    shared: list[str] = []
    """Sentences on where it changes more, or otherwise, than what was measured."""


class Verdict(Record):
    bottleneck: Bottleneck
    severity: VerdictSeverity
    summary: str
    """One sentence for a person in a hurry."""
    confidence: Confidence
    reasons: list[str]
    next_steps: list[str] = []
    """Advice on what to do, most useful first."""
    file: str | None = None
    line: int | None = None
    op_id: str | None = None
    where: RunPartName | None = None
    """The part of the run that costs most of what could be had back; None without a ledger."""
    where_file: str | None = None
    where_line: int | None = None
    source: SourceExcerpt | None = None
    """Lines around the place of the verdict or its first advice; None if that file has changed."""
    python_source: SourceExcerpt | None = None
    """Lines around the Python that the operation calls, where it stands elsewhere."""


class Finding(Record):
    """Result of one rule for this run."""

    rule: str
    title: str
    status: FindingStatus
    severity: FindingSeverity
    subject: FindingSubject = "speed"
    part: RunPartName = "steps"
    """The part of the run that its advice makes faster, and that its speed-ups are of; of waits
    between epochs they are of the whole loop."""
    file: str | None = None
    line: int | None = None
    op_id: str | None = None
    evidence: dict[str, Scalar] = {}
    """The numbers it rests on; units are in the names."""
    advice: str
    effect_on_results: EffectOnResults | None = None
    condition: str | None = None
    """Condition under which the edit keeps the results right and that only the user can judge, as a
    clause: `if the generator yields the same data in every epoch`."""
    speedup_at_most: float | None = None
    """Upper bound on the speed-up of its part, by Amdahl's law on measured times."""
    for_run: RunGain | None = None
    """Gain in the run from the measured speed-up, or from the most that its advice could save."""
    edit: Edit | None = None
    """The advised change, in a form that a trial can apply."""
    patch: Patch | None = None
    """The edit as a change of the source, or why there is none; None for a refuted edit."""
    trial: Trial = NOT_TRIED
    needs_first: str | None = None
    """A rule whose finding must be dealt with before this one."""

    @property
    def about_results(self) -> bool:
        """Return True if it is about what the training learns: a trial only tells its price."""
        return self.subject == "correctness"

    @property
    def dropped(self) -> bool:
        """Return True if a trial showed that its advice, which is about speed, gains nothing."""
        return self.trial.state == "refuted" and not self.about_results
