"""The outcome of trials in words."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.reporters.words import labels
from pipediag.reporters.words.quantities import counted, seconds, speedup, speedup_interval
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NOT_TRIED, WORTHWHILE, Combined, Trial
from pipediag.vocabulary import TrialState


@dataclass(frozen=True)
class Outcome:
    """The result for one finding's edit, in parts, so that a page can set them apart."""

    state: TrialState | None
    """State of the trial; None where no speed settles it, as the finding is about results."""
    word: str
    """`confirmed`, `refuted`, `inconclusive` or `not tried`; `price` where the state is None."""
    numbers: str
    """`1.94x [1.88, 2.01]`, or `at most 2.00x` where nothing was measured."""
    basis: str | None
    """`8 rounds`, on what."""
    says: str | None
    """The conclusion, or why there is none, as a sentence."""
    condition: str | None = None
    """The condition of the numbers: `if the generator yields the same data`."""

    def __str__(self) -> str:
        known = f"{self.word}: {self.numbers}" if self.numbers else self.word
        based = f"{known} over {self.basis}" if self.basis else known
        return f"{based}, {self.condition}" if self.numbers and self.condition else based


def outcome(finding: Finding) -> Outcome | None:
    """Return None where there is neither an edit nor a bound, so nothing for a trial to tell."""
    trial = finding.trial
    if finding.edit is None and finding.speedup_at_most is None and trial == NOT_TRIED:
        return None
    if finding.about_results and trial.state != "not_tried":
        return _price(trial)
    return Outcome(
        state=trial.state,
        word=trial.state.replace("_", " "),
        numbers=_numbers(finding),
        basis=_basis(trial),
        says=_says(trial),
        condition=finding.condition,
    )


def _price(trial: Trial) -> Outcome:
    """Return what right results cost; a trial that could not tell says why."""
    numbers = _measured(trial) if trial.speedup is not None else "not known"
    return Outcome(None, "price", numbers, _basis(trial), estimate_basis(trial) or trial.reason)


def _numbers(finding: Finding) -> str:
    if finding.trial.speedup is not None:
        return _measured(finding.trial)
    # A bound of another part of the run tells nobody anything: the run's gain stands beside.
    bounded = finding.part == "steps" or finding.for_run is None
    most = finding.speedup_at_most if bounded else None
    return f"at most {speedup(most)}" if most is not None else ""


def _measured(trial: Trial) -> str:
    return " ".join(filter(None, (known_by(trial), speedup(trial.speedup), interval(trial))))


def _basis(trial: Trial) -> str | None:
    if trial.speedup is None or trial.blocks is None:
        return None
    alone = " of the pipeline alone" if trial.consumer == "pipeline alone" else ""
    of = {
        "epoch": " of an epoch's start and its steps",
        "traces": " of the steps, and the traces of this run",
        "pauses": " of the steps, and the pauses after them",
    }
    on_top = ", on top of the other confirmed changes" if trial.on_top_of else ""
    return f"{counted(trial.blocks, 'round')}{of.get(trial.basis or '', alone)}{on_top}"


def _says(trial: Trial) -> str | None:
    estimated = estimate_basis(trial) if trial.speedup is not None else None
    if trial.state in ("confirmed", "refuted") and estimated:
        return estimated
    if trial.state == "not_tried" and trial.reason == NOT_TRIED.reason:
        return None
    if trial.state != "refuted":
        return trial.reason
    if trial.ci95 is not None and trial.ci95[1] < 1.0:
        return "This change makes it slower here."
    return f"This change gains less than {100 * (WORTHWHILE - 1):.0f} % here."


def tried(session: Session) -> list[Finding]:
    """Return the findings whose edit was measured, in the session's order."""
    return [finding for finding in session.findings if finding.trial.state != "not_tried"]


def each_edit_once(session: Session) -> list[Finding]:
    """Return the first of the findings that share an edit: it was tried once for them all."""
    found: list[Finding] = []
    for finding in tried(session):
        changes = finding.edit.changes if finding.edit else None
        if changes is None or all(one.edit is None or one.edit.changes != changes for one in found):
            found.append(finding)
    return found


def change(session: Session, edit_id: str, *, with_effect: bool = False) -> str:
    """Return what an edit changes, in a few words; its id where no finding has it.

    `with_effect` adds the condition, or what the edit does to the results unless they stay.
    """
    finding = next((f for f in session.findings if f.edit and f.edit.id == edit_id), None)
    if finding is None or finding.edit is None:
        return edit_id
    label, changes = finding.edit.label, finding.effect_on_results
    if not with_effect or (finding.condition is None and changes in (None, "same results")):
        return label
    corrects = "corrects the results" if changes == "corrects results" else effect(finding)
    return f"{label} ({finding.condition or corrects})"


def effect(finding: Finding) -> str | None:
    """Return what the edit does to the results, and what that asks of the user."""
    known = finding.effect_on_results
    return None if known is None else labels.EFFECT[known]


def dropped(session: Session) -> list[tuple[str, str]]:
    """Return the confirmed changes that the combination leaves out, each with its reason; without
    other ways to do what one finding advises."""
    if session.combined is None:
        return []
    advised = {one.edit.id for one in session.findings if one.edit is not None}
    left_out = [one for one in session.combined.dropped if one.edit in advised]
    return [(change(session, one.edit), one.reason) for one in left_out]


def caveats(finding: Finding) -> str | None:
    """Return what the measurement leaves out; None where that is nothing, or none was made."""
    if finding.trial.speedup is None:
        return None
    planned = finding.edit.caveat if finding.edit else None
    remarks = dict.fromkeys([*finding.trial.caveats, planned])
    return " ".join(remark for remark in remarks if remark) or None


def is_estimate(figures: Trial | Combined) -> bool:
    """Return True if the speed-up is of a step that was never run."""
    if isinstance(figures, Trial) and figures.consumer == "pipeline alone":
        return True
    return figures.basis == "pipeline"


def known_by(figures: Trial | Combined) -> str:
    """Return `measured` or `estimated`."""
    return "estimated" if is_estimate(figures) else "measured"


def interval(figures: Trial | Combined) -> str | None:
    """Return the interval; None where the rest of the step alone sets the estimate."""
    if figures.ci95 is None:
        return None
    low, high = (f"{end:.2f}" for end in figures.ci95)
    return None if is_estimate(figures) and low == high else speedup_interval(figures.ci95)


def estimate_basis(figures: Trial | Combined) -> str | None:
    """Return how much faster the pipeline alone became; None where steps were run."""
    if not is_estimate(figures):
        return None
    alone, bounds = figures.pipeline_speedup, figures.pipeline_ci95
    if alone is None:
        return "Training was not run for this."
    interval = f" {speedup_interval(bounds)}" if bounds else ""
    return (
        f"The pipeline alone ran {speedup(alone)}{interval} as fast, and a step takes the longer "
        "of a batch and its rest; training was not run for this."
    )


def counted_outcomes(session: Session) -> str:
    """Return `3 changes tried: 1 confirmed, 2 refuted`."""
    found = each_edit_once(session)
    states = [finding.trial.state for finding in found if not finding.about_results]
    words = [
        f"{states.count(state)} {state}"
        for state in ("confirmed", "refuted", "inconclusive")
        if state in states
    ]
    priced = len(found) - len(states)
    if priced:
        words.append(f"{priced} measured for its price")
    tried_in_all = f"{counted(len(found), 'change')} tried"
    return f"{tried_in_all}: {', '.join(words)}" if words else tried_in_all


def spent(session: Session) -> str | None:
    """Return how many changes were tried with which outcome, on what, and in which time."""
    trials = session.trials
    if trials is None:
        return None
    on = "the training loop" if trials.consumer == "training" else "the pipeline alone"
    took = f"{seconds(trials.used_s)} of {seconds(trials.budget_s)}"
    return f"{counted_outcomes(session)}; on {on}, in {took} allowed"
