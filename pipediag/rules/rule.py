"""A rule: what `pipediag explain` says of it, its check, and the findings that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

from pipediag.facts.devices import NO_DEVICE
from pipediag.facts.limits import Threshold
from pipediag.facts.pipeline import operations
from pipediag.rules.relevance import Weight
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Change, Edit
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

_Known = TypeVar("_Known")
Section = Literal["loop", "keras", "run", "steps", "breakdown", "pipeline", "host", "devices"]
Place = tuple[str | None, int | None]
Check = Callable[[Session], Iterable[Finding]]
OperationCheck = Callable[[Session, Operation], Iterable[Finding]]


class Profile(NamedTuple):
    """The devices of a profile, what made it, and the session that it belongs to, if any."""

    devices: Sequence[DeviceActivity]
    framework: Framework = "tensorflow"
    session: Session | None = None


DeviceCheck = Callable[[Profile], Iterable[Finding]]

_SILENCE = {
    "pass": "nothing found",
    "not-applicable": "does not apply",
    "inconclusive": "could not be decided",
    "error": "the rule itself failed",
}
"""Text in place of the title where there is no advice."""


@dataclass(eq=False)
class Rule:
    """A cause that is looked for. Causes with the same cure share an id.

    A check returns findings where something is to be said, and may leave out those that pass.
    """

    id: str
    title: str
    """Advice, as an imperative."""
    why: str
    fix: str
    """Change to make, and its possible cost."""
    needs: tuple[Section, ...]
    """Sections of the session without which the check is not called."""
    thresholds: tuple[Threshold, ...] = ()
    severity: FindingSeverity = "warn"
    effect: EffectOnResults = "same results"
    subject: FindingSubject = "speed"
    frees: tuple[StepClass, ...] = ()
    """The classes of the step's time that its advice could take away, where it is about speed."""
    sees_class_only: bool = False
    """True for a rule that sees a class of time and not what in the script takes it: it yields to
    every rule that knows that and `frees` the same class of time."""
    untried: str | None = None
    """Reason why no trial can tell what its advice buys, as a sentence; None where one can."""
    check: Check = field(init=False, repr=False)
    check_devices: DeviceCheck | None = field(init=False, default=None, repr=False)
    """The check where it needs no more than a profile; it makes edits only for a session."""

    def found_by(self, check: Check) -> Check:
        """Make the decorated function the check of this rule."""
        self.check = check
        return check

    def found_at(self, *kinds: str) -> Callable[[OperationCheck], OperationCheck]:
        """Make the decorated function the check, called for each operation of these kinds."""

        def decorate(check: OperationCheck) -> OperationCheck:
            self.check = lambda session: chain.from_iterable(
                check(session, op) for op in operations(session, *kinds)
            )
            return check

        return decorate

    def found_on_devices_by(self, check: DeviceCheck) -> DeviceCheck:
        """Make the decorated function the check of this rule, in a profile alone too."""
        self.check = lambda session: check(Profile(session.devices, session=session))
        self.check_devices = check
        return check

    def advice_for(self, profile: Profile, advice: str | None = None) -> str:
        """Return what to change, in TensorFlow's words; for other frameworks, the title."""
        return advice or self.fix if profile.framework == "tensorflow" else f"{self.title}."

    def findings(self, session: Session) -> list[Finding]:
        """Return what the check finds, or that it can't be made; nothing where the rule passes."""
        for section in self.needs:
            lack = _lack(section, session)
            if lack is not None:
                return [self.finding(*lack)]
        return [one for one in self.check(session) if one.status != "pass"]

    def finding(
        self,
        status: FindingStatus,
        advice: str = "",
        *,
        op: Operation | None = None,
        op_id: str | None = None,
        place: Place | None = None,
        weight: Weight | None = None,
        evidence: Mapping[str, Scalar] | None = None,
        title: str | None = None,
        severity: FindingSeverity | None = None,
        effect: EffectOnResults | None = None,
        subject: FindingSubject | None = None,
        condition: str | None = None,
        unless: str | None = None,
        edit: Edit | None = None,
        untried: str | None = None,
        part: RunPartName = "steps",
        for_run: RunGain | None = None,
        speedup_at_most: float | None = None,
    ) -> Finding:
        """Return a finding; only a failed one has a severity and bounds on its gain.

        The edit, its effect and its condition stay where it fails or informs. A failed one without
        an edit says why it has none (`untried`, or the rule's). The weight gives its evidence and
        its bounds, where they are not given. `unless` says what to deal with first: that is all
        that the finding then informs of.
        """
        if status == "fail" and unless is not None:
            status, advice = "informative", unless
        file, line = place or ((op.file, op.line) if op else (None, None))
        failed = status == "fail"
        kept = edit if status in ("fail", "informative") else None
        reason = untried or self.untried
        numbers: dict[str, Scalar] = {**(weight.evidence if weight else {}), **(evidence or {})}
        if weight is not None:
            for_run = for_run or weight.for_run
            speedup_at_most = speedup_at_most or weight.speedup_at_most
        return Finding(
            rule=self.id,
            title=title or self.title
            if status in ("fail", "informative")
            else f"{self.id}: {_SILENCE[status]}",
            status=status,
            severity=(severity or self.severity) if failed else "info",
            subject=subject or self.subject,
            part=part,
            file=file,
            line=line,
            op_id=op.id if op else op_id,
            # For reading: four significant digits.
            evidence={
                key: float(f"{value:.4g}") if isinstance(value, float) else value
                for key, value in numbers.items()
            },
            advice=advice,
            effect_on_results=(effect or self.effect) if failed or kept else None,
            condition=condition if failed or kept else None,
            speedup_at_most=speedup_at_most if failed else None,
            for_run=for_run if failed else None,
            edit=kept,
            trial=Trial(state="not_tried", reason=reason)
            if failed and kept is None and reason
            else NOT_TRIED,
        )

    def edit(self, about: Operation | str, label: str, *changes: Change, **given: Any) -> Edit:
        """Return an edit, named by the operation, or by the words, that it is about."""
        name = about if isinstance(about, str) else about.id
        return Edit(f"{self.id}:{name}", label, changes, **given)

    def weighed(self, weight: Weight, advice: str, **given: Any) -> Finding:
        """Return the finding that the weight decides, what stands against the advice first."""
        return self.finding(weight.status, weight.before(advice), weight=weight, **given)


pipeline_rule = partial(
    Rule, needs=("loop", "pipeline", "steps", "breakdown"), frees=("input_wait",)
)
"""Describes a rule on an operation that the step waits for."""


def known(section: _Known | None) -> _Known:
    """Return a section that the rule needs, without which its check is not called."""
    assert section is not None
    return section


_Lack = tuple[FindingStatus, str]


def _lack(section: Section, session: Session) -> _Lack | None:
    """Return why the check can't be made without this section, or None."""
    loop = session.diagnosed_loop()
    special = {"pipeline": _lack_of_pipeline, "devices": _lack_of_devices}.get(section)
    if special is not None:
        return special(session)
    if section in ("loop", "keras") and loop is None:
        return "not-applicable", "No training loop was seen."
    if section == "loop" or getattr(session, section) is not None:
        return None
    if section == "keras":
        return "not-applicable", "The training loop is not a Keras fit."
    reason = getattr(session, f"{section}_missing")
    if section == "run" and not reason:
        return "not-applicable", "The session has no ledger of the run."
    return "inconclusive", reason or f"The session has no `{section}` and gives no reason."


def _lack_of_pipeline(session: Session) -> _Lack | None:
    loop, pipeline = session.diagnosed_loop(), session.pipeline
    if pipeline is not None and pipeline.ops:
        return None
    if loop is not None and loop.from_python:
        return "not-applicable", "Python passes each batch to the step: it reads no pipeline."
    if pipeline is None:
        return "inconclusive", session.pipeline_missing or "The input pipeline was not recorded."
    if pipeline.missing:
        return "inconclusive", pipeline.missing
    return "not-applicable", "The training loop reads no tf.data pipeline."


def _lack_of_devices(session: Session) -> _Lack | None:
    if any(device.kind.lower() != "cpu" for device in session.devices):
        return None
    if session.devices:
        return "not-applicable", "Without an accelerator, the breakdown already shows this."
    return _lack("loop", session) or ("inconclusive", session.breakdown_missing or NO_DEVICE)
