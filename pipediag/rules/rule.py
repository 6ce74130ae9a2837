"""What a rule is: its description (`Meta`), its check, and how it makes findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipediag.facts.limits import Threshold
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.trials import NOT_TRIED, Trial
from pipediag.vocabulary import (
    EffectOnResults,
    FindingSeverity,
    FindingStatus,
    FindingSubject,
    Framework,
    RunPartName,
    Scalar,
    StepClass,
)

Section = Literal["loop", "keras", "run", "steps", "breakdown", "pipeline", "host", "devices"]

Place = tuple[str | None, int | None]


@dataclass(frozen=True)
class Meta:
    """What `pipediag explain` and the documentation say of a rule."""

    id: str
    """A noun. Causes that one rule looks at share it."""
    name: str
    title_failed: str
    title_passed: str
    why: str
    edit: str
    cost: str
    """What the edit might cost: memory, results, readability."""
    needs: tuple[Section, ...]
    thresholds: tuple[Threshold, ...]
    severity: FindingSeverity
    effect_on_results: EffectOnResults
    subject: FindingSubject = "speed"
    frees: tuple[StepClass, ...] = ()
    """The classes of the step's time that its advice could take away, where it is about speed."""
    sees_class_only: bool = False
    """True for a rule that sees a class of time and not what in the script takes it: it yields to
    every rule that knows that and `frees` the same class of time."""
    title_informative: str | None = None
    """Where the failed title would say more than a finding that only informs."""
    tried_when_informing: bool = False
    """Whether a finding that only informs is tried too, as measuring is the very way to know."""
    untried: str | None = None
    """Why no trial can tell what its advice buys, as a sentence; None where one can."""

    def finding(
        self,
        status: FindingStatus,
        advice: str,
        *,
        op: Operation | None = None,
        op_id: str | None = None,
        place: Place | None = None,
        evidence: Mapping[str, Scalar] | None = None,
        title: str | None = None,
        severity: FindingSeverity | None = None,
        effect: EffectOnResults | None = None,
        subject: FindingSubject | None = None,
        condition: str | None = None,
        edit: Edit | None = None,
        untried: str | None = None,
        part: RunPartName = "steps",
        for_run: RunGain | None = None,
        speedup_at_most: float | None = None,
    ) -> Finding:
        """A finding; only a failed one carries a severity and bounds on what its advice buys.

        `for_run` is the bound on the whole run, where the rule knows it better than by the bound
        on the part (`speedup_at_most`).

        The edit is kept, with its effect and condition, where it fails, and where it informs if the
        rule tries that too. A failed one without an edit says why there is none (`untried`, or the
        rule's).
        """
        file, line = place or ((op.file, op.line) if op else (None, None))
        failed = status == "fail"
        numbers = {key: _rounded(value) for key, value in (evidence or {}).items()}
        tried = failed or (status == "informative" and self.tried_when_informing)
        kept = edit if tried else None
        reason = untried or self.untried
        return Finding(
            rule=self.id,
            title=title or self._title(status),
            status=status,
            severity=(severity or self.severity) if failed else "info",
            subject=subject or self.subject,
            part=part,
            file=file,
            line=line,
            op_id=op.id if op else op_id,
            evidence=numbers,
            advice=advice,
            effect_on_results=(effect or self.effect_on_results) if failed or kept else None,
            condition=condition if failed or kept else None,
            speedup_at_most=speedup_at_most if failed else None,
            for_run=for_run if failed else None,
            edit=kept,
            trial=_not_tried(reason) if failed and kept is None and reason else NOT_TRIED,
        )

    def _title(self, status: FindingStatus) -> str:
        if status == "informative":
            return self.title_informative or self.title_failed
        if status == "fail":
            return self.title_failed
        if status == "pass":
            return self.title_passed
        outcome = {
            "not-applicable": "does not apply",
            "inconclusive": "could not be decided",
            "error": "the rule itself failed",
        }[status]
        return f"{self.name}: {outcome}"


@dataclass(frozen=True)
class Rule:
    """A cause that is looked for: what is said of it, and how it is found."""

    meta: Meta
    check: Callable[[Session], list[Finding]]
    """Gives the findings on a session whose sections named in `meta.needs` are all present."""
    check_devices: Callable[[Sequence[DeviceActivity], Framework], list[Finding]] | None = None
    """Gives those on the devices of a profile, in a framework's words, without a session."""


def with_edit(meta: Meta, finding: Finding, edit: Edit | None, untried: str) -> Finding:
    """Return a failed finding with its edit, or with why there is none.

    One that informs gets its edit too where the rule tries that; any other stays as it is.
    """
    if finding.status == "informative" and meta.tried_when_informing and edit is not None:
        effect = meta.effect_on_results
        return finding.model_copy(update={"edit": edit, "effect_on_results": effect})
    if finding.status != "fail":
        return finding
    trial = NOT_TRIED if edit else _not_tried(untried)
    return finding.model_copy(update={"edit": edit, "trial": trial})


def _not_tried(reason: str) -> Trial:
    return Trial(state="not_tried", reason=reason)


def _rounded(value: Scalar) -> Scalar:
    """Evidence is for reading: four significant digits are more than any of it deserves."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
