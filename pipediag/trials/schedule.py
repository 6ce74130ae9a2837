"""From findings to measured edits, within a budget of time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from pipediag.facts.step import lengths_vary
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.trials import Combined, PipelineAlone, Trial, TrialRun
from pipediag.trials.bench import (
    BASE_VARIANT,
    BaseRefusedError,
    Bench,
    FirstCalls,
    LostError,
    TakenBy,
)
from pipediag.trials.candidates import Candidate, candidates
from pipediag.trials.contest import Contest, combine
from pipediag.trials.executor import Block, Executor, OnEvent, VariantRefusedError
from pipediag.trials.statistics import FEWEST_ROUNDS, estimate

PULL_S = 0.3
MOST_PULLS = 5
PULLS_SHARE = 0.15
"""Share of the time left that pulling the pipeline alone may take while edits are tried."""

_NO_EDIT = "There was no edit to try."
_SEED = 20240229


@dataclass(frozen=True)
class TrialOutcome:
    """All that one call of `run_trials` found."""

    run: TrialRun
    trials: dict[str, Trial] = field(default_factory=dict)
    """By the id of the edit."""
    further: tuple[Finding, ...] = ()
    """Findings that were tried after those of the rules, as none of theirs was confirmed."""
    combined: Combined | None = None
    combined_missing: str | None = None
    pipeline_alone: PipelineAlone | None = None
    pipeline_alone_missing: str | None = None


def run_trials(
    session: Session,
    findings: Sequence[Finding],
    executor: Executor,
    budget_s: float,
    *,
    further: Sequence[Finding] = (),
    clock: Callable[[], float] = time.monotonic,
    on_event: OnEvent = lambda _event: None,
    consumer_ms: float | None = None,
    epoch_examples: float | None = None,
    epochs_need_s: float | None = None,
    share: float = 1.0,
    evaluates: Loop | None = None,
    began_s: float | None = None,
    seed: int = _SEED,
) -> TrialOutcome:
    """Measure the edits that the findings carry, one by one and then the confirmed ones together.

    Never raises for what the executor does: the trials say which variant failed, or that the
    process is gone.

    Args:
        session: of the run so far.
        findings: in the order in which to deal with them.
        executor: the process that runs the script.
        budget_s: time for all trials.
        further: findings that are tried where none of the others is confirmed.
        clock: gives seconds.
        on_event: gets `Trying` before each variant is built and before each block, and `Decided` as
            soon as an edit is decided.
        consumer_ms: time that a step takes beside its input, where the training loop can't be
            driven; batches are then pulled instead.
        epoch_examples: examples of an epoch, where whole epochs are compared.
        epochs_need_s: the budget that this would need, where it is too small.
        share: part of the user's own budget that this one is.
        evaluates: the loop whose pipeline is tried where that is not the diagnosed one; its batches
            are pulled, as nothing is evaluated for a trial.
        began_s: when the budget began to count, by the clock; None is now.
        seed: of the order within rounds.
    """
    loop = evaluates or session.diagnosed_loop()
    taken_by = _taken_by(consumer_ms, epoch_examples, evaluates)
    varies = loop is not None and (loop.shapes_vary or lengths_vary(loop.element_spec or ""))
    first_calls = FirstCalls(one_length=not varies)
    bench = Bench(executor, taken_by, budget_s, clock, on_event, seed, began_s, first_calls)
    trials = _Trials(bench, epochs_need_s, share)
    trials.run(candidates(findings), candidates(further))
    found, base_ms = trials.contest.trials, [taken_by.step_ms(one) for one in bench.base_blocks]
    return TrialOutcome(
        run=TrialRun(
            loop_id=loop.id if loop else "",
            consumer=taken_by.consumer,
            budget_s=budget_s,
            used_s=round(bench.used_s(), 3),
            base_step_ms=round(fmean(base_ms), 4) if base_ms else None,
            blocks=bench.blocks,
            notes=trials.notes,
            epochs_need_s=trials.epochs_need_s,
        ),
        trials=found,
        further=tuple(one for one in further if one.edit is not None and one.edit.id in found),
        combined=trials.combined,
        combined_missing=trials.combined_missing,
        pipeline_alone=trials.alone,
        pipeline_alone_missing=trials.alone_missing,
    )


def _taken_by(
    consumer_ms: float | None, epoch_examples: float | None, evaluates: Loop | None
) -> TakenBy:
    if evaluates is not None:
        seen = evaluates.evaluation
        rest_ms = seen.consumer_ms if seen is not None else None
        return TakenBy("pipeline", None, rest_ms or 0.0, "Nothing is evaluated for a trial")
    if consumer_ms is not None:
        return TakenBy("pipeline", consumer_ms=consumer_ms)
    return TakenBy("step" if epoch_examples is None else "epoch", epoch_examples)


class _Trials:
    def __init__(self, bench: Bench, epochs_need_s: float | None, share: float) -> None:
        self.notes: list[str] = []
        self.combined: Combined | None = None
        self.combined_missing: str | None = None
        self.alone: PipelineAlone | None = None
        """The pipeline as written without its consumer, measured once, when there is time."""
        self.alone_missing: str | None = None
        self.contest = Contest(bench, share)
        self.epochs_need_s: int | None = None
        """The whole budget of the user that edits of an epoch's start would need."""
        self._bench = bench
        self._epochs_need_s = epochs_need_s
        self._share = share
        self._only_pulls = bench.taken_by.basis == "pipeline"

    def run(self, first: list[Candidate], further: list[Candidate]) -> None:
        tried = self._allowed(first)
        if not tried:
            tried, further = self._allowed(further), []
        if tried:
            self._measure(tried, further)
        else:
            self.alone_missing = _NO_EDIT
        if self.contest.epochs_need_s is not None:
            self.epochs_need_s = math.ceil(self.contest.epochs_need_s / self._share)
        if self.combined is not None:
            return
        if not tried:
            self.combined_missing = _NO_EDIT
        elif self.contest.confirmed:
            self.combined_missing = (
                "Each confirmed change needs a decision of yours first, so none was combined."
            )
        else:
            self.combined_missing = "No edit was confirmed."

    def _allowed(self, listed: list[Candidate]) -> list[Candidate]:
        """Return those that can be tried here; the others get a trial that says why not."""
        allowed = []
        for one in listed:
            reason = self._why_not(one)
            if reason is None:
                allowed.append(one)
            else:
                self.contest.refuse(one, reason)
        return allowed

    def _why_not(self, candidate: Candidate) -> str | None:
        if not candidate.safe:
            return "It is not safe here: it would change what the training sees."
        if candidate.edit.whole_epoch and self._bench.taken_by.basis != "epoch":
            return self._why_no_epochs()
        if self._only_pulls and candidate.changes_model:
            return (
                "It changes the model or its callbacks, and the training loop can't be run by "
                "itself here."
            )
        if self._only_pulls and candidate.changes_hyper_parameter:
            return (
                "What it does to the rest of the step can't be measured: the training loop can't "
                "be run by itself here."
            )
        return None

    def _why_no_epochs(self) -> str:
        begin = (
            "It changes how long an epoch's first batch is waited for, and whole epochs were not "
            "tried"
        )
        if self._only_pulls:
            return f"{begin}: the pipeline alone could be run here, and no epoch of the training."
        if self._epochs_need_s is None:
            return (
                f"{begin}: that needs to be known how many steps one has, and a wait that is a "
                "part of it worth speaking of."
            )
        self.epochs_need_s = math.ceil(self._epochs_need_s / self._share)
        return (
            f"{begin}: its waits are so long that this takes `--budget {self.epochs_need_s}`, and "
            f"the time for trials was {self._bench.budget_s:.0f} s."
        )

    def _measure(self, first: list[Candidate], further: list[Candidate]) -> None:
        ended: str | None = None
        contest = self.contest
        alternatives = [one for one in first if one.edit.instead_of is not None]
        # No patch holds these, so they have the time that the others leave.
        to_retune = [one for one in first if one.changes_hyper_parameter]
        later = [*alternatives, *(one for one in to_retune if one not in alternatives)]
        now = [one for one in first if one not in later]
        try:
            self.notes += self._bench.prepare_base()
            slow = [one for one in now if self._bench.takes_long(one.variant)]
            contest.enter(one for one in now if one not in slow)
            now, later = [], [*later, *slow]
            contest.more_to_come = bool(later or further)
            self._one_by_one()
            contest.more_to_come = bool(further)
            contest.enter(self._needed(later))
            self._one_by_one()
            contest.more_to_come = False
            if not contest.confirmed:
                contest.enter(self._allowed(further))
                self._one_by_one()
        except BaseRefusedError as error:
            ended = str(error)
            contest.end(ended)
        except LostError as lost:
            ended = str(lost)
            contest.end(ended, culprit=lost.variant)
        for one in (*now, *later):
            if ended is not None and one.edit.id not in contest.trials:
                contest.refuse(one, ended)
        self.combined = combine(self._bench, contest.confirmed, ended)
        if ended is None:
            ended = self._pull_with_what_is_left()
        self._conclude_alone(ended or "No time was left for it.")
        if ended:
            self.notes.append(ended)

    def _needed(self, later: list[Candidate]) -> list[Candidate]:
        """Return those in whose place no other edit was confirmed; the rest get a trial that says
        so."""
        labels = {
            edit: one.candidate.edit.label
            for one in self.contest.confirmed
            for edit in (one.candidate.edit.id, *one.candidate.same_as)
        }
        needed = []
        for one in later:
            label = labels.get(one.edit.instead_of or "")
            if label is None:
                needed.append(one)
            else:
                self.contest.refuse(one, f"Another change against the same is confirmed: {label}.")
        return needed

    def _one_by_one(self) -> None:
        while self.contest.step():
            if self.contest.any_measured():
                self._pull_alone(PULLS_SHARE)

    def _pull_with_what_is_left(self) -> str | None:
        if self._bench.lost:
            return str(self._bench.lost)
        try:
            self._pull_alone(share=1.0)
        except LostError as lost:
            return str(lost)
        return None

    def _pull_alone(self, share: float) -> None:
        """Pull batches if that share of the time left allows enough pulls.

        Raises:
            LostError: the executor is gone.
        """
        if self.alone or self.alone_missing or self._only_pulls:
            return
        # A pull starts and warms up as a block of the loop does, and its batches come no slower.
        cost = self._bench.cost_s([BASE_VARIANT])
        pulls = min(MOST_PULLS, int(share * self._bench.left_s() / cost)) if cost else MOST_PULLS
        if pulls < FEWEST_ROUNDS:
            return
        try:
            self.alone = _time_per_batch([self._bench.pull_base(PULL_S) for _ in range(pulls)])
        except VariantRefusedError as error:
            self.alone_missing = str(error)

    def _conclude_alone(self, reason: str) -> None:
        """Take the blocks of trials that only pulled batches for the pipeline alone."""
        if self.alone or self.alone_missing:
            return
        blocks = self._bench.base_blocks
        if self._only_pulls and len(blocks) >= FEWEST_ROUNDS:
            self.alone = _time_per_batch(blocks)
        else:
            self.alone_missing = reason


def _time_per_batch(blocks: Sequence[Block]) -> PipelineAlone:
    found = estimate([block.step_ms for block in blocks])
    return PipelineAlone(step_ms=round(found.value, 4), ci95_ms=found.interval, blocks=found.rounds)
