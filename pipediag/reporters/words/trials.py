"""The outcome of trials in words, and the measured number that heads a report."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.run import EXPLAINED_PERCENT, steps_percent
from pipediag.reporters.words import labels, run
from pipediag.reporters.words.quantities import (
    NO_BREAK,
    counted,
    seconds,
    speedup,
    speedup_interval,
)
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.session.trials import NOT_TRIED, WORTHWHILE, Combined, Trial
from pipediag.vocabulary import TrialState

_NOTICEABLE = 1.01
"""The ratio of the pipeline's gain to the step's from which the rest of the step is named."""
_NOTHING_GAINED = 1.005


@dataclass(frozen=True)
class Outcome:
    """The result for one finding's edit, in parts, so that a page can set them apart."""

    state: TrialState | None
    """None where no speed settles it, as the finding is about results."""
    word: str
    """`confirmed`, `refuted`, `inconclusive` or `not tried`; `price` where the state is None."""
    numbers: str
    """`1.94x [1.88, 2.01]`, or `at most 2.00x` where nothing was measured."""
    basis: str | None
    """`8 block pairs`, on what."""
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
        word=labels.TRIAL[trial.state],
        numbers=_numbers(finding),
        basis=_basis(trial),
        says=_says(trial),
        condition=finding.condition,
    )


def _price(trial: Trial) -> Outcome:
    """Return what right results cost; a trial that could not tell says why."""
    if trial.speedup is None:
        return Outcome(None, "price", "not known", None, trial.reason)
    low, high = trial.ci95 or (trial.speedup, trial.speedup)
    cost = "costs nothing, and is faster" if low > 1.0 else "costs no speed that could be measured"
    if high < 1.0:
        cost = f"costs {100 * (1.0 - trial.speedup):.0f} % speed"
    numbers = f"{cost}, {_measured(trial)}"
    return Outcome(None, "price", numbers, _basis(trial), estimate_basis(trial))


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
    of = " of the pipeline alone" if trial.consumer == "pipeline alone" else ""
    if trial.basis == "epoch":
        of = " of an epoch's start and its steps"
    return f"{counted(trial.blocks, 'block pair')}{of}"


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
    if trial.ci95 is not None and trial.ci95[0] > 1.0:
        return f"This change gains less than {100 * (WORTHWHILE - 1):.0f} % here."
    return "This advice does nothing here."


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


def not_tried(session: Session) -> list[Finding]:
    """Return the failed findings whose gain is bounded at best, in the session's order."""
    return [
        finding
        for finding in session.findings
        if finding.status == "fail"
        and finding.trial.state == "not_tried"
        and outcome(finding) is not None
    ]


def change(session: Session, edit_id: str, *, with_effect: bool = False) -> str:
    """Return what an edit changes, in a few words; its id where no finding has it.

    Args:
        session: the session whose findings have the edit.
        edit_id: of the edit.
        with_effect: adds the condition, or what the edit does to the results unless they stay.
    """
    finding = next((f for f in session.findings if f.edit and f.edit.id == edit_id), None)
    if finding is None or finding.edit is None:
        return edit_id
    label, changes = finding.edit.label, finding.effect_on_results
    if not with_effect or (finding.condition is None and changes in (None, "same results")):
        return label
    corrects = "corrects the results" if changes == "mends results" else effect(finding)
    return f"{label} ({finding.condition or corrects})"


def effect(finding: Finding) -> str | None:
    """Return what the edit does to the results, and what that asks of the user."""
    if finding.effect_on_results is None:
        return None
    return labels.EFFECT[finding.effect_on_results]


def dropped(session: Session) -> list[tuple[str, str]]:
    """Return the confirmed changes that the combination leaves out, each with its reason."""
    if session.combined is None:
        return []
    return [(change(session, left.edit), left.reason) for left in session.combined.dropped]


def caveats(finding: Finding) -> str | None:
    """Return what the measurement leaves out; None where that is nothing, or none was made."""
    if finding.trial.speedup is None:
        return None
    planned = finding.edit.caveat if finding.edit else None
    remarks = dict.fromkeys([*finding.trial.caveats, planned])
    return " ".join(remark for remark in remarks if remark) or None


def missed(finding: Finding) -> str | None:
    """Return a sentence where more was measured than the upper bound."""
    trial, most = finding.trial, finding.speedup_at_most
    if trial.ci95 is None or finding.about_results or is_estimate(trial):
        return None
    if most is None or finding.part != "steps" or trial.ci95[0] <= most:
        return None
    return (
        f"The bound did not hold: it was {speedup(most)} at most, and the trial measured "
        f"{speedup_interval(trial.ci95)}."
    )


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
    known = figures.ci95
    if known is None or (is_estimate(figures) and _without_width(known)):
        return None
    return speedup_interval(known)


def estimate_basis(figures: Trial | Combined) -> str | None:
    """Return how much faster the pipeline alone became and what the step leaves of it."""
    if not is_estimate(figures):
        return None
    alone, bounds = figures.pipeline_speedup, figures.pipeline_ci95
    if alone is None or figures.speedup is None:
        return "Training was not run for this."
    if alone < 1.0:
        inverse = (1 / bounds[1], 1 / bounds[0]) if bounds and bounds[0] > 0 else None
        times = _times(1 / alone, inverse)
        return f"The pipeline alone took {times} as long; training was not run for this."
    text = f"The pipeline alone became {_times(alone, bounds)} as fast"
    if alone < _NOTICEABLE * figures.speedup:
        return f"{text}; training was not run for this, and may gain less."
    if figures.speedup < _NOTHING_GAINED:
        return f"{text}; the rest of the training step, which is longer, leaves nothing of that."
    return f"{text}, and the rest of the training step then leaves no more."


def _times(value: float, bounds: Interval | None) -> str:
    if bounds is None or _without_width(bounds):
        return f"{_plain(value)} times"
    return f"{_plain(bounds[0])} to {_plain(bounds[1])} times"


def _plain(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _without_width(bounds: Interval) -> bool:
    return f"{bounds[0]:.2f}" == f"{bounds[1]:.2f}"


@dataclass(frozen=True)
class Headline:
    """The result of all trials: the line next to the verdict."""

    number: str | None
    """`3.10x`."""
    bounds: str | None
    """`[2.90, 3.30]`."""
    text: str
    """The text behind the number, or the whole sentence where there is none."""
    changes: tuple[str, ...] = ()
    word: str = "measured"
    """Or `estimated`, where no step of the training loop was run."""
    for_run: str | None = None
    """The gain in all of the run."""

    def says(self, number: str) -> bool:
        """Return True if it gives that figure with its interval."""
        return number == self.number or number in (self.for_run or "").split()

    def __str__(self) -> str:
        number = " ".join(filter(None, (self.number, self.bounds)))
        start = f"{self.word.capitalize()}: {number} {self.text}" if number else self.text
        start += f", {self.for_run}" if self.for_run else ""
        return f"{start}: {'; '.join(self.changes)}" if self.changes else f"{start}."


def headline(session: Session) -> Headline | None:
    """Return None where nothing was tried and no reason for that is on record."""
    combined = session.combined or _the_only_one(session)
    other_part = _of_another_part(session, combined)
    if other_part is not None:
        return other_part
    if combined is not None and combined.findings:
        return _together(session, combined)
    if tried(session):
        return Headline(None, None, _none_together(session))
    # Worth a line only where there was something to try.
    reason = session.trials_missing
    if not reason or not not_tried(session):
        return None
    return Headline(None, None, f"No change was tried{_reason(reason)}")


def _together(session: Session, combined: Combined) -> Headline:
    changes = tuple(_change(session, edit) for edit in combined.findings)
    count = counted(len(changes), "change")
    for_run = combined.for_run
    # The steps, which trials compare, may be too little of the run to speak for it.
    little = session.run is not None and session.run.percent_of("steps") < EXPLAINED_PERCENT
    if for_run is not None and little:
        of_steps = f"{speedup(combined.speedup)} in the {_compared(session, combined)}"
        return _of_the_run(for_run, f"{count}, {of_steps}", changes, known_by(combined))
    if combined.speedup is not None:
        alone = "from the pipeline alone, without training, " if is_estimate(combined) else ""
        return Headline(
            number=speedup(combined.speedup),
            bounds=interval(combined),
            text=f"{alone}{_of_what(session, combined)}with {count}",
            changes=changes,
            word=known_by(combined),
            for_run=run.gain(for_run),
        )
    reason = f" ({session.combined_missing.rstrip('.')})" if session.combined_missing else ""
    return Headline(None, None, f"{count} confirmed one by one, not together{reason}", changes)


def _of_another_part(session: Session, combined: Combined | None) -> Headline | None:
    """Return the headline of a change beside the steps that gains more than all of theirs."""
    confirmed = [
        (finding.for_run, finding.edit)
        for finding in session.findings
        if finding.trial.state == "confirmed"
        and finding.part != "steps"
        and finding.edit is not None
        and finding.for_run is not None
    ]
    if not confirmed:
        return None
    gain, edit = max(confirmed, key=lambda one: one[0].speedup)
    if (
        combined is not None
        and combined.for_run is not None
        and (gain.speedup <= combined.for_run.speedup or edit.id in combined.findings)
    ):
        return None
    return _of_the_run(gain, "1 change", (_change(session, edit.id),))


def _of_the_run(
    gain: RunGain, what: str, changes: tuple[str, ...], word: str = "measured"
) -> Headline:
    bounds = speedup_interval(gain.ci95) if gain.ci95 else None
    text = f"{run.of_what(gain)} with {what}"
    return Headline(speedup(gain.speedup), bounds, text, changes, word)


def _change(session: Session, edit: str) -> str:
    """Return what an edit changes, and whether a patch that holds others goes without it."""
    text = change(session, edit, with_effect=True)
    patch = session.patch
    beside = patch is not None and patch.edits and any(one.edit == edit for one in patch.left_out)
    return f"{text}, not in the patch" if beside else text


def _the_only_one(session: Session) -> Combined | None:
    """Return a single confirmed change as all of them together, also where trials broke off."""
    confirmed = [
        (finding, finding.edit)
        for finding in each_edit_once(session)
        if finding.edit is not None and finding.trial.state == "confirmed"
    ]
    if len(confirmed) != 1:
        return None
    [(finding, edit)] = confirmed
    shared = finding.trial.model_dump(include=set(Combined.model_fields))
    return Combined(findings=[edit.id], for_run=finding.for_run, **shared)


def _compared(session: Session, combined: Combined) -> str:
    if combined.basis == "epoch":
        return "epochs"
    edits = [finding.edit for finding in session.findings if finding.edit is not None]
    evaluates = any(one.loop_id is not None for one in edits if one.id in combined.findings)
    return "steps of the evaluation" if evaluates else "steps"


def _of_what(session: Session, combined: Combined) -> str:
    """Name what was compared, where its gain is not the run's."""
    compared = _compared(session, combined)
    if compared != "steps":
        return f"in the {compared}, "
    steps = steps_percent(session.diagnosed_loop())
    if steps is None or steps >= EXPLAINED_PERCENT:
        return ""
    return f"in the steps, which are {steps:.0f}{NO_BREAK}% of the loop, "


def _none_together(session: Session) -> str:
    found = each_edit_once(session)
    states = [finding.trial.state for finding in found if not finding.about_results]
    words = [
        f"{states.count(state)} {labels.TRIAL[state]}"
        for state in ("confirmed", "refuted", "inconclusive")
        if state in states
    ]
    priced = len(found) - len(states)
    if priced:
        words.append(f"{priced} measured for its price")
    text = f"{counted(len(found), 'change')} tried: {', '.join(words)}"
    if "confirmed" not in states:
        return text
    return f"{text}; not measured together{_reason(session.combined_missing)}"


def _reason(text: str | None) -> str:
    return f": {text.rstrip('.')}" if text else ""


def spent(session: Session) -> str | None:
    """Return how many changes were tried, on what, in how much of the time for trials."""
    trials = session.trials
    if trials is None:
        return None
    consumer = {
        "training": "on the training loop itself",
        "pipeline alone": "on the pipeline alone, without training",
    }[trials.consumer]
    return (
        f"{counted(len(each_edit_once(session)), 'change')} tried {consumer}, in "
        f"{seconds(trials.used_s)} of the {seconds(trials.budget_s)} for a closer look and for "
        "trials"
    )
