"""What to change first: the advice, what it buys, and why to believe that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from pipediag.facts.order import known_gain, to_act_on, worth_doing
from pipediag.reporters.words import pipeline_estimate, run_parts
from pipediag.reporters.words.quantities import (
    counted,
    measured,
    milliseconds,
    speedup,
    speedup_interval,
)
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NOT_TRIED, TrialBlock
from pipediag.vocabulary import BASE


@dataclass(frozen=True)
class Gain:
    """One figure of what a change buys."""

    of_what: str
    """`a step`, `an epoch`, `the run`."""
    number: str
    """`5.65x`."""
    rest: str
    """What follows it: the interval, from how long to how long, whether it is a bound."""
    measured: bool
    """Whether it was seen in the training loop; otherwise it is an estimate or a bound."""

    @property
    def text(self) -> str:
        """`5.65x [2.28, 13.99]`."""
        return " ".join(filter(None, (self.number, self.rest)))


@dataclass(frozen=True)
class FirstAdvice:
    finding: Finding
    gains: tuple[Gain, ...]
    proof: str
    """One sentence: what was held against what, or why nothing was."""


def first_advice(session: Session) -> FirstAdvice | None:
    """None where nothing is worth doing; never what its own trial left open or refuted."""
    finding = next((one for one in session.findings if worth_doing(one)), None)
    if finding is None:
        return None
    gains = (_of_the_step(finding), _of_the_run(finding))
    return FirstAdvice(finding, tuple(filter(None, gains)), _proof(session, finding))


def nothing_worth_doing(session: Session) -> str | None:
    """The sentence in place of the first advice; None where there is one, or nothing was found."""
    found = [one for one in session.findings if to_act_on(one)]
    if not found or any(map(worth_doing, found)):
        return None
    best = max(found, key=lambda one: known_gain(one) or 1.0)
    gain = known_gain(best) or 1.0
    of_what = f" {run_parts.of_what(best.for_run)}" if best.for_run is not None else ""
    if gain <= 1.0:
        return "Nothing: no change that was found can make it faster."
    return (
        f"Nothing: what was found promises {speedup(gain)}{of_what} and no more, and no trial "
        "has confirmed that."
    )


def _of_the_step(finding: Finding) -> Gain | None:
    trial = finding.trial
    if finding.about_results:
        return None
    if trial.speedup is not None:
        bounds = pipeline_estimate.bounds(trial) or ""
        rest = ", ".join(filter(None, (bounds, finding.condition)))
        unit = "an epoch" if trial.basis == "epoch" else "a step"
        seen = not pipeline_estimate.is_estimate(trial)
        return Gain(unit, speedup(trial.speedup), rest, measured=seen)
    if finding.part != "steps":
        return None
    if finding.speedup_at_most is not None:
        rest = ", ".join(filter(None, ("at most", finding.condition)))
        return Gain("a step", speedup(finding.speedup_at_most), rest, measured=False)
    return None


def _of_the_run(finding: Finding) -> Gain | None:
    gain = finding.for_run
    if gain is None or finding.about_results:
        return None
    bounds = speedup_interval(gain.ci95) if gain.ci95 else None
    basis = None if gain.basis == "measured" else gain.basis
    rest = " ".join(filter(None, (bounds, basis, f"({run_parts.from_to(gain)})")))
    seen = gain.basis == "measured" and not pipeline_estimate.is_estimate(finding.trial)
    return Gain(run_parts.scope(gain), speedup(gain.speedup), rest, measured=seen)


def _proof(session: Session, finding: Finding) -> str:
    trial = finding.trial
    if trial.speedup is None or not trial.blocks:
        reason = trial.reason if trial != NOT_TRIED else session.trials_missing
        return " ".join(filter(None, ("Not proven yet: no trial was made of it.", reason)))
    where = (
        "with the pipeline alone, without training"
        if pipeline_estimate.is_estimate(trial)
        else "in the running training loop"
    )
    return (
        f"Base and change alternated {where}, {counted(trial.blocks, 'pair')} of blocks"
        f"{_between(session, finding)}."
    )


def _between(session: Session, finding: Finding) -> str:
    """What the two came to, in the rounds that have both.

    Means are geometric, as the trial's own: their ratio is its speed-up.
    """
    run, edit = session.trials_of(finding.edit), finding.edit
    if run is None or edit is None:
        return ""
    changed = {block.round: block for block in run.blocks if block.arm == edit.id}
    base = {block.round: block for block in run.blocks if block.arm == BASE}
    rounds = sorted(base.keys() & changed.keys())
    if not rounds or not all(base[n].examples_per_s and changed[n].examples_per_s for n in rounds):
        return ""
    without, with_it = (
        measured(geometric_mean(arm[n].examples_per_s for n in rounds)) for arm in (base, changed)
    )
    steps = f"{without} against {with_it} examples per second"
    if finding.trial.basis != "epoch":
        return f": {steps}"
    before, after = (_first_step(arm[n] for n in rounds) for arm in (base, changed))
    if before is None or after is None:
        return ""
    return f": {before} against {after} until an epoch's first step is done, then {steps}"


def _first_step(blocks: Iterable[TrialBlock]) -> str | None:
    times = [block.first_step_ms for block in blocks if block.first_step_ms is not None]
    return milliseconds(fmean(times)) if times else None
