"""What trials found, in the words that every report uses."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.reporters.words import labels, pipeline_estimate
from pipediag.reporters.words.quantities import (
    counted,
    speedup,
    speedup_interval,
)
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NOT_TRIED, WORTHWHILE, Trial
from pipediag.vocabulary import TrialState


@dataclass(frozen=True)
class Outcome:
    """What is known of one finding's edit, in parts, so that a page can set them apart."""

    state: TrialState | None
    """None where no speed settles it, as the finding is about results."""
    word: str
    """`confirmed`, `refuted`, `inconclusive` or `not tried`; `price` where the state is None."""
    numbers: str
    """`1.94x [1.88, 2.01]`, or `at most 2.00x` where nothing was measured."""
    basis: str | None
    """`8 block pairs`, on what."""
    says: str | None
    """What that comes to, or why it is not known, as a sentence."""
    condition: str | None = None
    """What must hold for the numbers to be had: `if the generator yields the same data`."""

    def __str__(self) -> str:
        known = f"{self.word}: {self.numbers}" if self.numbers else self.word
        based = f"{known} over {self.basis}" if self.basis else known
        return f"{based}, {self.condition}" if self.numbers and self.condition else based


def outcome(finding: Finding) -> Outcome | None:
    """None where there is neither an edit nor a bound, so nothing that a trial could tell."""
    trial = finding.trial
    if finding.edit is None and finding.speedup_at_most is None and trial == NOT_TRIED:
        return None
    if finding.about_results and trial.state != "not_tried":
        return _price(trial)
    return Outcome(
        state=trial.state,
        word=labels.TRIAL[trial.state],
        numbers=_numbers(finding),
        basis=_basis(trial),
        says=_says(trial),
        condition=finding.condition,
    )


def tried(session: Session) -> list[Finding]:
    """The findings whose edit was measured, in the session's order."""
    return [finding for finding in session.findings if finding.trial.state != "not_tried"]


def each_edit_once(session: Session) -> list[Finding]:
    """Of the same, the first of those that share an edit: it was tried once for them all."""
    found: list[Finding] = []
    for finding in tried(session):
        changes = finding.edit.changes if finding.edit else None
        if changes is None or all(one.edit is None or one.edit.changes != changes for one in found):
            found.append(finding)
    return found


def not_tried(session: Session) -> list[Finding]:
    """The failed findings whose gain is bounded at best, in the session's order."""
    return [
        finding
        for finding in session.findings
        if finding.status == "fail"
        and finding.trial.state == "not_tried"
        and outcome(finding) is not None
    ]


def change(session: Session, edit_id: str) -> str:
    """What an edit changes, in a few words; its id where no finding has it."""
    finding = _of_edit(session, edit_id)
    return finding.edit.label if finding and finding.edit else edit_id


def change_and_effect(session: Session, edit_id: str) -> str:
    """The same, and on what condition, or what it does to the results unless they stay as they
    were."""
    finding = _of_edit(session, edit_id)
    if finding is not None and finding.condition is not None:
        return f"{change(session, edit_id)} ({finding.condition})"
    if finding is not None and finding.effect_on_results == "mends results":
        return f"{change(session, edit_id)} (mends the results)"
    altered = finding is not None and finding.effect_on_results not in (None, "same results")
    words = effect(finding) if finding is not None and altered else None
    return f"{change(session, edit_id)} ({words})" if words else change(session, edit_id)


def _of_edit(session: Session, edit_id: str) -> Finding | None:
    return next((f for f in session.findings if f.edit and f.edit.id == edit_id), None)


def effect(finding: Finding) -> str | None:
    """What the edit does to the results, and what that asks of the user."""
    if finding.effect_on_results is None:
        return None
    return labels.EFFECT[finding.effect_on_results]


def dropped(session: Session) -> list[tuple[str, str]]:
    """Confirmed changes that the combination leaves out, each with its reason."""
    if session.combined is None:
        return []
    return [(change(session, left.edit), left.reason) for left in session.combined.dropped]


def caveats(finding: Finding) -> str | None:
    """What the measurement leaves out or changes; None where nothing, or nothing was measured."""
    if finding.trial.speedup is None:
        return None
    planned = finding.edit.caveat if finding.edit else None
    remarks = dict.fromkeys([*finding.trial.caveats, planned])
    return " ".join(remark for remark in remarks if remark) or None


def missed(finding: Finding) -> str | None:
    """Where more was measured than the upper bound, a sentence that says so."""
    trial, most = finding.trial, finding.speedup_at_most
    if trial.ci95 is None or finding.about_results or pipeline_estimate.is_estimate(trial):
        return None
    if most is None or finding.part != "steps" or trial.ci95[0] <= most:
        return None
    return (
        f"The bound did not hold: {speedup(most)} was to be the most, and it gained "
        f"{speedup_interval(trial.ci95)}."
    )


def _price(trial: Trial) -> Outcome:
    """What right results cost; a trial that could not tell says why."""
    if trial.speedup is None:
        return Outcome(None, "price", "not known", None, trial.reason)
    return Outcome(
        state=None,
        word="price",
        numbers=", ".join([_cost(trial), _measured(trial)]),
        basis=_basis(trial),
        says=pipeline_estimate.made_of(trial),
    )


def _cost(trial: Trial) -> str:
    speed = trial.speedup or 1.0
    low, high = trial.ci95 or (speed, speed)
    if high < 1.0:
        return f"costs {1.0 - speed:.0%} speed".replace("%", " %")
    return "costs nothing, and is faster" if low > 1.0 else "costs no speed that could be measured"


def _numbers(finding: Finding) -> str:
    parts = []
    # What becomes of a part of the run as such tells nobody anything: the run's gain stands beside.
    told = finding.part == "steps" or finding.for_run is None
    if told and finding.speedup_at_most is not None and finding.trial.speedup is None:
        parts.append(f"at most {speedup(finding.speedup_at_most)}")
    if finding.trial.speedup is not None:
        parts.append(_measured(finding.trial))
    return ", ".join(parts)


def _measured(trial: Trial) -> str:
    known = (pipeline_estimate.word(trial), speedup(trial.speedup), pipeline_estimate.bounds(trial))
    return " ".join(filter(None, known))


def _basis(trial: Trial) -> str | None:
    if trial.speedup is None or trial.blocks is None:
        return None
    of = " of the pipeline alone" if trial.consumer == "pipeline alone" else ""
    if trial.basis == "epoch":
        of = " of an epoch's start and its steps"
    return f"{counted(trial.blocks, 'block pair')}{of}"


def _says(trial: Trial) -> str | None:
    estimated = pipeline_estimate.made_of(trial) if trial.speedup is not None else None
    match trial.state:
        case "confirmed" | "refuted" if estimated:
            return estimated
        case "refuted":
            return _refutation(trial)
        case "not_tried" if trial.reason == NOT_TRIED.reason:
            return None
        case _:
            return trial.reason


def _refutation(trial: Trial) -> str:
    if trial.ci95 is not None and trial.ci95[1] < 1.0:
        return "This change makes it slower here."
    if trial.ci95 is not None and trial.ci95[0] > 1.0:
        return f"This change buys less than {WORTHWHILE - 1:.0%} here."
    return "This advice does nothing here."
