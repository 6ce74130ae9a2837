"""Which edits are tried, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pipediag.session.edits import Check, Edit, touched
from pipediag.session.findings import Finding
from pipediag.trials.arms import Arm
from pipediag.trials.predictions import is_of_prediction
from pipediag.vocabulary import FindingStatus

RETUNE = "Changes a hyper-parameter: retune it yourself."
_WORTH_TRYING: tuple[FindingStatus, ...] = ("fail", "informative")


@dataclass(frozen=True)
class Candidate:
    """An edit that may be tried, with what the finding says of it."""

    edit: Edit
    changes_hyper_parameter: bool
    safe: bool
    condition: str | None = None
    """What only the user can decide before it is used."""
    same_as: tuple[str, ...] = ()
    """Ids of other findings' edits that make the same changes."""

    @property
    def arm(self) -> Arm:
        return Arm(self.edit.id, self.edit.changes, self.edit.check, self.edit.runs_through)

    @property
    def left_out_of_combination(self) -> str | None:
        """Why it is not combined with others without the user's decision; None where it is."""
        if self.changes_hyper_parameter:
            return RETUNE
        if self.condition is not None:
            return f"Only {self.condition}: that is for you to decide."
        return None

    @property
    def changes_model(self) -> bool:
        """Whether something is tried that the pipeline alone can't show."""
        return "model" in touched(self.edit.changes)


def candidates(findings: Iterable[Finding]) -> list[Candidate]:
    """The edits of what fails or informs, each once, in the order in which the findings stand.

    That is the order in which to deal with them, so the budget goes to what is worth knowing first.
    """
    return _without_twins(
        [
            _candidate(finding, finding.edit)
            for finding in findings
            if finding.edit is not None
            and finding.status in _WORTH_TRYING
            and not is_of_prediction(finding)
        ]
    )


def together(chosen: Iterable[Candidate]) -> Arm:
    """One arm with the changes of several edits, in the order given; of one alone, its own."""
    listed = list(chosen)
    if len(listed) == 1:
        return listed[0].arm
    return Arm(
        " + ".join(one.edit.id for one in listed),
        tuple(change for one in listed for change in one.edit.changes),
        _check_for(listed),
        any(one.edit.runs_through for one in listed),
    )


def _candidate(finding: Finding, edit: Edit) -> Candidate:
    return Candidate(
        edit=edit,
        changes_hyper_parameter=finding.effect_on_results == "changes a hyper-parameter",
        safe=finding.effect_on_results != "not safe here",
        condition=finding.condition,
    )


def _without_twins(found: list[Candidate]) -> list[Candidate]:
    kept: list[Candidate] = []
    twins: dict[str, list[str]] = {}
    for one in found:
        first = next((other for other in kept if _same(one.edit, other.edit)), None)
        if first is None:
            kept.append(one)
        elif one.edit.id != first.edit.id:
            twins.setdefault(first.edit.id, []).append(one.edit.id)
    return [_with_twins(one, twins.get(one.edit.id, [])) for one in kept]


def _same(one: Edit, other: Edit) -> bool:
    return one.id == other.id or one.changes == other.changes


def _with_twins(one: Candidate, twins: list[str]) -> Candidate:
    return replace(one, same_as=tuple(dict.fromkeys(twins)))


def _check_for(chosen: list[Candidate]) -> Check | None:
    # Elements are the same as before only as far as every edit that touches them promises it.
    promised = {one.edit.check for one in chosen if "elements" in touched(one.edit.changes)}
    promised.discard("repeats")  # each was checked by itself
    if not promised or None in promised:
        return None
    return "shape" if "shape" in promised else "equal"
