"""What the trials come to, next to the verdict: the measured number that heads the report."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.run import EXPLAINED_PERCENT, steps_percent
from pipediag.reporters.words import labels, pipeline_estimate, run_parts
from pipediag.reporters.words import trial_outcomes as trials
from pipediag.reporters.words.quantities import (
    NO_BREAK,
    counted,
    seconds,
    speedup,
    speedup_interval,
)
from pipediag.session.model import Session
from pipediag.session.trials import Combined


@dataclass(frozen=True)
class Headline:
    """What the trials come to: the line next to the verdict."""

    number: str | None
    """`3.10x`."""
    bounds: str | None
    """`[2.90, 3.30]`."""
    text: str
    """What follows the number, or the whole sentence where there is none."""
    changes: tuple[str, ...]
    word: str = "measured"
    """Or `estimated`, where no step of the training loop was run."""
    for_run: str | None = None
    """What that comes to in all of the run."""

    def says(self, number: str) -> bool:
        """Whether it gives that figure with its interval."""
        return number == self.number or number in (self.for_run or "").split()

    def __str__(self) -> str:
        number = " ".join(filter(None, (self.number, self.bounds)))
        start = f"{self.word.capitalize()}: {number} {self.text}" if number else self.text
        start += f", {self.for_run}" if self.for_run else ""
        return f"{start}: {'; '.join(self.changes)}" if self.changes else f"{start}."


def headline(session: Session) -> Headline | None:
    """None where nothing was tried and no reason for that is on record."""
    combined = session.combined or _the_only_one(session)
    other_part = _of_another_part(session, combined)
    if other_part is not None:
        return other_part
    if combined is not None and combined.findings:
        changes = tuple(_change(session, name) for name in combined.findings)
        count = counted(len(changes), "change")
        if combined.for_run is not None and _little_of_the_run(session):
            return Headline(
                number=speedup(combined.for_run.speedup),
                bounds=speedup_interval(combined.for_run.ci95) if combined.for_run.ci95 else None,
                text=f"{run_parts.of_what(combined.for_run)} with {count}, "
                f"{speedup(combined.speedup)} in the {_compared(session, combined)}",
                changes=changes,
                word=pipeline_estimate.word(combined),
            )
        if combined.speedup is not None:
            return Headline(
                number=speedup(combined.speedup),
                bounds=pipeline_estimate.bounds(combined),
                text=f"{_from_what(combined)}{_of_what(session, combined)}with {count}",
                changes=changes,
                word=pipeline_estimate.word(combined),
                for_run=run_parts.gain(combined.for_run),
            )
        reason = f" ({session.combined_missing.rstrip('.')})" if session.combined_missing else ""
        return Headline(None, None, f"{count} confirmed one by one, not together{reason}", changes)
    if trials.tried(session):
        return Headline(None, None, _none_together(session), ())
    return _nothing_tried(session)


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
    steps_gain = combined.for_run if combined is not None else None
    if steps_gain is not None and (
        gain.speedup <= steps_gain.speedup or (combined and edit.id in combined.findings)
    ):
        return None
    return Headline(
        number=speedup(gain.speedup),
        bounds=speedup_interval(gain.ci95) if gain.ci95 else None,
        text=f"{run_parts.of_what(gain)} with 1 change",
        changes=(_change(session, edit.id),),
    )


def _change(session: Session, edit: str) -> str:
    """With what it does to results, and whether a patch that holds others goes without it."""
    said = trials.change_and_effect(session, edit)
    patch = session.patch
    beside = patch is not None and patch.edits and any(one.edit == edit for one in patch.left_out)
    return f"{said}, not in the patch" if beside else said


def _little_of_the_run(session: Session) -> bool:
    """Whether the steps, which trials compare, are too little of the run to speak for it."""
    return session.run is not None and session.run.percent_of("steps") < EXPLAINED_PERCENT


def _the_only_one(session: Session) -> Combined | None:
    """A single confirmed change is all of them together, also where the trials broke off."""
    confirmed = [
        (finding, finding.edit, finding.trial)
        for finding in trials.each_edit_once(session)
        if finding.edit is not None and finding.trial.state == "confirmed"
    ]
    if len(confirmed) != 1:
        return None
    [(finding, edit, trial)] = confirmed
    return Combined(
        findings=[edit.id],
        speedup=trial.speedup,
        ci95=trial.ci95,
        blocks=trial.blocks,
        for_run=finding.for_run,
        basis=trial.basis,
        pipeline_speedup=trial.pipeline_speedup,
        pipeline_ci95=trial.pipeline_ci95,
    )


def _from_what(combined: Combined) -> str:
    alone = pipeline_estimate.is_estimate(combined)
    return "from the pipeline alone, without training, " if alone else ""


def _compared(session: Session, combined: Combined) -> str:
    if combined.basis == "epoch":
        return "epochs"
    return "steps of the evaluation" if _evaluates(session, combined) else "steps"


def _evaluates(session: Session, combined: Combined) -> bool:
    """Return True where the changes are of the pipeline of a loop that evaluates."""
    edits = [finding.edit for finding in session.findings if finding.edit is not None]
    return any(one.loop_id is not None for one in edits if one.id in combined.findings)


def _of_what(session: Session, combined: Combined) -> str:
    """Name what was compared, where its gain is not the run's."""
    if combined.basis == "epoch" or _evaluates(session, combined):
        return f"in the {_compared(session, combined)}, "
    steps = steps_percent(session.diagnosed_loop())
    if steps is None or steps >= EXPLAINED_PERCENT:
        return ""
    return f"in the steps, which are {steps:.0f}{NO_BREAK}% of the loop, "


def _none_together(session: Session) -> str:
    found = trials.each_edit_once(session)
    states = [finding.trial.state for finding in found if not finding.about_results]
    words = [
        f"{states.count(state)} {labels.TRIAL[state]}"
        for state in ("confirmed", "refuted", "inconclusive")
        if state in states
    ]
    priced = len(found) - len(states)
    if priced:
        words.append(f"{priced} measured for its price")
    apart = f"; not measured together{_reason(session.combined_missing)}"
    return (
        f"{counted(len(found), 'change')} tried: {', '.join(words)}"
        f"{apart if 'confirmed' in states else ''}"
    )


def _nothing_tried(session: Session) -> Headline | None:
    """Worth a line only where there was something to try."""
    reason = session.trials_missing
    if not reason or not trials.not_tried(session):
        return None
    return Headline(None, None, f"No change was tried{_reason(reason)}", ())


def _reason(text: str | None) -> str:
    return f": {text.rstrip('.')}" if text else ""


def spent(session: Session) -> str | None:
    """How many changes were tried, on what, in how much of the time that they were given."""
    run = session.trials
    if run is None:
        return None
    consumer = {
        "training": "on the training loop itself",
        "pipeline alone": "on the pipeline alone, without training",
    }[run.consumer]
    return (
        f"{counted(len(trials.each_edit_once(session)), 'change')} tried {consumer}, in "
        f"{seconds(run.used_s)} of the {seconds(run.budget_s)} for a closer look and for trials"
    )
