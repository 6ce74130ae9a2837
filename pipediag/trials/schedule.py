"""From findings to measured edits, within a budget of time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from pipediag.facts.step import lengths_vary
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.trials import Combined, PipelineAlone, Trial, TrialRun
from pipediag.trials.arms import ArmRefusedError, Block, Executor
from pipediag.trials.bench import BASE_ARM, BaseRefusedError, Bench, LostError
from pipediag.trials.candidates import Candidate, candidates
from pipediag.trials.combination import combine
from pipediag.trials.consumers import PulledPipeline, TakenBy, TrainingEpochs, TrainingLoop, step_ms
from pipediag.trials.contest import Contest
from pipediag.trials.events import OnEvent, TrialEvent
from pipediag.trials.first_calls import FirstCalls
from pipediag.trials.outcome import TrialOutcome
from pipediag.trials.statistics import FEWEST_ROUNDS, estimate

PULL_S = 0.3
MOST_PULLS = 5

SHARE = 0.15
"""Of the time left: edits go first."""


class BasePulls:
    """Found once, when there is time for it."""

    def __init__(self, bench: Bench) -> None:
        self.found: PipelineAlone | None = None
        self.missing: str | None = None
        self._bench = bench

    def pull(self, share: float) -> None:
        """Pull batches if that share of the time left allows enough pulls.

        Raises:
            LostError: the executor is gone.
        """
        if self.found or self.missing or isinstance(self._bench.taken_by, PulledPipeline):
            return
        # A pull starts and warms up as a block of the loop does, and its batches come no slower.
        cost = self._bench.cost_s([BASE_ARM])
        pulls = min(MOST_PULLS, int(share * self._bench.left_s() / cost)) if cost else MOST_PULLS
        if pulls < FEWEST_ROUNDS:
            return
        try:
            self.found = _time_per_batch([self._bench.pull_base(PULL_S) for _ in range(pulls)])
        except ArmRefusedError as error:
            self.missing = str(error)

    def close(self, reason: str) -> None:
        """Nothing more is pulled. Where the trials themselves only pulled, their blocks serve."""
        if self.found or self.missing:
            return
        blocks = self._bench.base_blocks
        if isinstance(self._bench.taken_by, PulledPipeline) and len(blocks) >= FEWEST_ROUNDS:
            self.found = _time_per_batch(blocks)
        else:
            self.missing = reason


def _time_per_batch(blocks: Sequence[Block]) -> PipelineAlone:
    found = estimate([step_ms(block) for block in blocks])
    return PipelineAlone(step_ms=round(found.value, 4), ci95_ms=found.interval, blocks=found.rounds)


_SEED = 20240229


def _silent(_event: TrialEvent) -> None:
    pass


def run_trials(
    session: Session,
    findings: Sequence[Finding],
    executor: Executor,
    budget_s: float,
    *,
    further: Sequence[Finding] = (),
    clock: Callable[[], float] = time.monotonic,
    on_event: OnEvent = _silent,
    consumer_ms: float | None = None,
    epoch_examples: float | None = None,
    epochs_need_s: float | None = None,
    share: float = 1.0,
    evaluates: Loop | None = None,
    began_s: float | None = None,
    seed: int = _SEED,
) -> TrialOutcome:
    """Measure the edits that the findings carry, one by one and then the confirmed ones together.

    `further` findings are tried behind them where none of those is confirmed.
    `clock` gives seconds; the budget counts from `began_s` by it, and without that from now.
    `share` is the part of the user's own budget that this one is.
    `consumer_ms` is given where the training loop can't be driven: what a step takes beside its
    input; batches are then pulled instead. `epoch_examples` is given where an epoch of so many is
    what counts, and not its steps alone; `epochs_need_s` is the budget that this would need, where
    it is too small. `evaluates` is the loop whose pipeline is tried where that is not the diagnosed
    one; its batches are pulled, as nothing is evaluated for a trial.

    `on_event` gets `Trying` before each arm is built and before each block, and `Decided` as soon
    as an edit is settled.

    Never raises for what the executor does: an arm that fails and a process that is gone are said
    in the trials.
    """
    loop = evaluates or session.diagnosed_loop()
    taken_by = _taken_by(consumer_ms, epoch_examples, evaluates)
    first_calls = FirstCalls(one_length=loop is None or not _lengths_vary(loop))
    bench = Bench(executor, taken_by, budget_s, clock, on_event, seed, began_s, first_calls)
    trials = _Trials(bench, epochs_need_s, share)
    trials.run(candidates(findings), candidates(further))
    return TrialOutcome(
        run=TrialRun(
            loop_id=loop.id if loop else "",
            consumer=taken_by.consumer,
            budget_s=budget_s,
            used_s=round(bench.used_s(), 3),
            base_step_ms=_base_step_ms(bench),
            blocks=bench.blocks,
            notes=trials.notes,
            epochs_need_s=trials.epochs_need_s,
        ),
        trials=trials.contest.trials,
        further=tuple(one for one in further if _is_among(one, trials.contest.trials)),
        combined=trials.combined,
        combined_missing=trials.combined_missing,
        pipeline_alone=trials.alone.found,
        pipeline_alone_missing=trials.alone.missing,
    )


def _lengths_vary(loop: Loop) -> bool:
    return bool(loop.shapes_vary) or lengths_vary(loop.element_spec or "")


def _taken_by(
    consumer_ms: float | None, epoch_examples: float | None, evaluates: Loop | None
) -> TakenBy:
    if evaluates is not None:
        seen = evaluates.evaluation
        rest_ms = seen.consumer_ms if seen is not None else None
        return PulledPipeline(rest_ms or 0.0, why="Nothing is evaluated for a trial")
    if consumer_ms is not None:
        return PulledPipeline(consumer_ms)
    return TrainingLoop() if epoch_examples is None else TrainingEpochs(epoch_examples)


class _Trials:
    def __init__(self, bench: Bench, epochs_need_s: float | None, share: float) -> None:
        self.notes: list[str] = []
        self.combined: Combined | None = None
        self.combined_missing: str | None = None
        self.contest = Contest(bench, share)
        self.epochs_need_s: int | None = None
        """Of the user's whole budget, where what shortens an epoch's start did not fit in it."""
        self.alone = BasePulls(bench)
        self._bench = bench
        self._epochs_need_s = epochs_need_s
        self._share = share

    def run(self, first: list[Candidate], further: list[Candidate]) -> None:
        tried = self._allowed(first)
        if not tried:
            tried, further = self._allowed(further), []
        if tried:
            self._measure(tried, further)
        else:
            self.alone.close("There was no edit to try.")
        if self.contest.epochs_need_s is not None:
            self.epochs_need_s = math.ceil(self.contest.epochs_need_s / self._share)
        if self.combined is None:
            self.combined_missing = _why_not_combined(self.contest, any_tried=bool(tried))

    def _allowed(self, listed: list[Candidate]) -> list[Candidate]:
        """Without those that can't be tried here, which are told so."""
        allowed = []
        for one in listed:
            reason = self._why_not(one)
            if reason is None:
                allowed.append(one)
            else:
                self.contest.refuse(one, reason)
        return allowed

    def _why_not(self, candidate: Candidate) -> str | None:
        taken_by = self._bench.taken_by
        if not candidate.safe:
            return "It is not safe here: it would change what the training sees."
        if candidate.edit.whole_epoch and not isinstance(taken_by, TrainingEpochs):
            return self._why_no_epochs()
        return _why_not_alone(candidate) if isinstance(taken_by, PulledPipeline) else None

    def _why_no_epochs(self) -> str:
        begin = (
            "It changes how long an epoch's first batch is waited for, and whole epochs were not "
            "tried"
        )
        if isinstance(self._bench.taken_by, PulledPipeline):
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
        alternatives = [one for one in first if one.edit.instead_of is not None]
        self.contest.enter(one for one in first if one.edit.instead_of is None)
        self.contest.more_to_come = bool(alternatives or further)
        try:
            self.notes += self._bench.prepare_base()
            self._one_by_one()
            self.contest.more_to_come = bool(further)
            self.contest.enter(self._needed(alternatives))
            self._one_by_one()
            self.contest.more_to_come = False
            if not self.contest.confirmed:
                self.contest.enter(self._allowed(further))
                self._one_by_one()
        except BaseRefusedError as error:
            ended = str(error)
            self.contest.end(ended)
        except LostError as lost:
            ended = str(lost)
            self.contest.end(ended, culprit=lost.arm)
        for one in alternatives:
            if ended is not None and one.edit.id not in self.contest.trials:
                self.contest.refuse(one, ended)
        self.combined = combine(self._bench, self.contest.confirmed, ended)
        if ended is None:
            ended = self._pull_with_what_is_left()
        self.alone.close(ended or "No time was left for it.")
        if ended:
            self.notes.append(ended)

    def _needed(self, alternatives: list[Candidate]) -> list[Candidate]:
        """Without those in whose place another one was confirmed, which are told so."""
        labels = {
            edit: one.candidate.edit.label
            for one in self.contest.confirmed
            for edit in (one.candidate.edit.id, *one.candidate.same_as)
        }
        needed = []
        for one in alternatives:
            label = labels.get(one.edit.instead_of or "")
            if label is None:
                needed.append(one)
            else:
                self.contest.refuse(one, f"Another change against the same is confirmed: {label}.")
        return needed

    def _one_by_one(self) -> None:
        while self.contest.step():
            if self.contest.any_measured():
                self.alone.pull(SHARE)

    def _pull_with_what_is_left(self) -> str | None:
        if self._bench.lost:
            return str(self._bench.lost)
        try:
            self.alone.pull(share=1.0)
        except LostError as lost:
            return str(lost)
        return None


def _why_not_alone(candidate: Candidate) -> str | None:
    """Why the pipeline alone, with nothing that takes its batches, can't show what it does."""
    if candidate.changes_model:
        return (
            "It changes the model or its callbacks, and the training loop can't be run by itself "
            "here."
        )
    if candidate.changes_hyper_parameter:
        return (
            "What it does to the rest of the step can't be measured: the training loop can't be "
            "run by itself here."
        )
    return None


def _is_among(finding: Finding, trials: Mapping[str, Trial]) -> bool:
    return finding.edit is not None and finding.edit.id in trials


def _why_not_combined(contest: Contest, *, any_tried: bool) -> str:
    if not any_tried:
        return "There was no edit to try."
    if contest.confirmed:
        return "Each confirmed change needs a decision of yours first, so none was combined."
    return "No edit was confirmed."


def _base_step_ms(bench: Bench) -> float | None:
    if not bench.base_blocks:
        return None
    return round(fmean(bench.taken_by.step_ms(block) for block in bench.base_blocks), 4)
