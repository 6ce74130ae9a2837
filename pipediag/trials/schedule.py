"""Trials of the edits that findings advise, within a budget of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pipediag.estimates import FEWEST_ROUNDS, estimate
from pipediag.facts.run import PAUSED_NS
from pipediag.facts.step import shapes_vary
from pipediag.session.edits import Edit, saves_pauses, saves_traces
from pipediag.session.findings import Finding
from pipediag.session.messages import BlockRun
from pipediag.session.recorded_loops import LoopFacts
from pipediag.session.trials import Combined, PipelineAlone, Trial, TrialRun
from pipediag.trials import Executor, OnEvent, VariantRefusedError
from pipediag.trials.bench import BASE_VARIANT, Bench, TakenBy, TrialsEndedError
from pipediag.trials.candidates import Candidate, candidates
from pipediag.trials.combination import Combination, OfRun
from pipediag.trials.contest import MUCH, Contest, Tried

PULL_S = 0.3
MOST_PULLS = 5
PULLS_SHARE = 0.15
"""Share of the time left that pulling the pipeline alone may take while edits are tried."""

TRIED_AGAIN = 0.97
"""Upper end of the interval of an edit from which it is tried again on top of others. Own choice:
what makes the pipeline as written slower may do so to any."""

STEPS = TakenBy()


@dataclass(frozen=True)
class TrialOutcome:
    """Results of one call of `run_trials`."""

    run: TrialRun
    trials: dict[str, Trial] = field(default_factory=dict)
    """Trials by the id of the edit."""
    combined: Combined | None = None
    combined_missing: str | None = None
    pipeline_alone: PipelineAlone | None = None
    pipeline_alone_missing: str | None = None


def run_trials(
    loop: LoopFacts,
    findings: Sequence[Finding],
    executor: Executor,
    budget_s: float,
    *,
    taken_by: TakenBy = STEPS,
    clock: Callable[[], float] = time.monotonic,
    on_event: OnEvent = lambda _event: None,
    no_epochs: str | None = None,
    began_s: float | None = None,
    of_run: Callable[[Finding], float | None] = lambda _finding: None,
    of_all: Callable[[Combined], float | None] = lambda _combined: None,
) -> TrialOutcome:
    """Measure the edits that the findings carry, one by one and then the confirmed ones together.

    Never raises for what the executor does: the trials say which variant failed, or that the
    process is gone. `no_epochs` is the reason, as a clause, why whole epochs are not tried.
    `began_s` is the time at which the budget began to count, by `clock`. `of_run` returns the
    speed-up of the run by a finding's trial, and `of_all` that by edits together, where known.
    """
    began_s = clock() if began_s is None else began_s
    bench = Bench(
        executor, taken_by, budget_s, clock, on_event, began_s, one_length=not shapes_vary(loop)
    )
    carrying = {one.edit.id: one for one in findings if one.edit is not None}

    def speedup_of_run(edit_id: str) -> float | None:
        finding, trial = carrying.get(edit_id), trials.contest.trials.get(edit_id)
        return None if finding is None or trial is None else of_run(finding.but(trial=trial))

    trials = _Trials(bench, no_epochs, OfRun(speedup_of_run, of_all))
    trials.run(candidates(findings))
    found = trials.contest.trials
    freed = [one.freed_ns for one in bench.base_blocks if one.freed_ns is not None]
    return TrialOutcome(
        run=TrialRun(
            loop_id=loop.id,
            consumer=taken_by.consumer,
            budget_s=budget_s,
            used_s=round(bench.used_s(), 3),
            blocks=bench.blocks,
            notes=trials.notes,
            iterators_freed=len(freed),
            iterators_paused=sum(one >= PAUSED_NS for one in freed),
        ),
        trials=found,
        combined=trials.combined,
        combined_missing=trials.combined_missing,
        pipeline_alone=trials.alone,
        pipeline_alone_missing=trials.alone_missing,
    )


class _Trials:
    def __init__(self, bench: Bench, no_epochs: str | None, of_run: OfRun) -> None:
        self.notes: list[str] = []
        self.combined: Combined | None = None
        self.combined_missing: str | None = None
        self.alone: PipelineAlone | None = None
        """The pipeline as written without its consumer, measured once, when there is time."""
        self.alone_missing: str | None = None
        self.contest = Contest(bench)
        self._bench = bench
        self._no_epochs = no_epochs
        self._of_run = of_run
        self._only_pulls = bench.taken_by.basis == "pipeline"

    def run(self, listed: list[Candidate]) -> None:
        tried = self._allowed(listed)
        if not tried:
            self.alone_missing = self.combined_missing = "There was no edit to try."
            return
        self._measure(tried)
        if self.combined is None:
            self.combined_missing = (
                "Each confirmed change first needs a decision from you, so none was combined."
                if self.contest.confirmed
                else "No edit was confirmed."
            )

    def _allowed(self, listed: list[Candidate]) -> list[Candidate]:
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
        if self._only_pulls and (candidate.changes_model or candidate.changes_hyper_parameter):
            return (
                "Its effect on the rest of the step can't be measured: the training loop can't "
                "be run by itself here."
            )
        return None

    def _why_no_epochs(self) -> str:
        too_short = "that takes a known number of steps, and a wait that is long enough to matter"
        why = self._no_epochs or too_short
        if self._only_pulls:
            why = "only the pipeline could be run here, not an epoch of the training"
        return (
            "It changes the wait for an epoch's first batch, and whole epochs were not tried: "
            f"{why}."
        )

    def _measure(self, first: list[Candidate]) -> None:
        contest, ended = self.contest, None
        combination = Combination(self._bench, self._of_run)
        others_fail = any(one.fails for one in first if not one.changes_hyper_parameter)
        turns = {one.edit.id: _turn(one, others_fail) for one in first}
        try:
            self._bench.prepare_base()
            self.notes += self._bench.taken_by.left_out
            now = [one for one in first if not turns[one.edit.id]]
            slow = [one for one in now if self._bench.takes_long(one.variant)]
            later = sorted(first, key=lambda one: turns[one.edit.id])[len(now) :]
            contest.enter(one for one in now if one not in slow)
            contest.more_to_come = bool(later or slow)
            self._one_by_one()
            contest.more_to_come = False
            # Of several ways to do the same, the best is combined with others.
            problems = {one.problem for one in now} - {None}
            ways = [one for one in later if one.problem in problems and _is_early(one, turns)]
            contest.enter(ways)
            self._one_by_one()
            combination.take(contest.take_confirmed())
            open_ones = [*(one for one in later if _is_early(one, turns)), *slow]
            self._try_on_top(combination, open_ones)
            combination.measure()
            contest.enter(self._needed([*later, *slow], first))
            self._one_by_one()
        except TrialsEndedError as error:
            ended = str(error)
            contest.end(ended, culprit=error.variant)
            for one in first:
                if one.edit.id not in contest.trials:
                    contest.refuse(one, ended)
        with suppress(TrialsEndedError):
            combination.take(contest.take_confirmed(), ended)
        with suppress(TrialsEndedError):
            if ended is None and self._bench.lost is None:
                combination.measure()
                self._pull_alone(share=1.0)
        self.combined = combination.result()
        if ended is None and self._bench.lost is not None:
            ended = str(self._bench.lost)
        blocks = self._bench.base_blocks
        if self._only_pulls and len(blocks) >= FEWEST_ROUNDS:
            self.alone = _time_per_batch(blocks)
        elif not (self.alone or self.alone_missing):
            self.alone_missing = ended or "No time was left for it."
        if ended:
            self.notes.append(ended)

    def _try_on_top(self, combination: Combination, open_ones: Iterable[Candidate]) -> None:
        """Try what was not confirmed, and what was to be tried later, on top of the confirmed
        edits: these gain more there than on top of what is slow, and are decided sooner."""
        if not combination.helps_the_run:
            return
        for candidate in open_ones:
            # The check of its elements needs a trial of it alone.
            if candidate.edit.check is None and candidate.edit.id not in self.contest.trials:
                self._settle_on_top(combination, candidate)
        if combination.speedup >= MUCH:
            for one in filter(_may_help_others, self.contest.undecided):
                self._settle_on_top(combination, one.candidate, one.same_elements)

    def _settle_on_top(
        self, combination: Combination, candidate: Candidate, same_elements: int | None = None
    ) -> None:
        if candidate.left_out_of_combination is not None or _needs_base(candidate.edit):
            return
        trial = combination.try_on_top(candidate)
        known = candidate.edit.id in self.contest.trials
        # What its own rounds say stays where nothing is known on top.
        if trial.state == "confirmed" or (trial.state != "not_tried" and not known):
            self.contest.settle(candidate, trial.but(same_elements=same_elements))

    def _needed(self, later: Iterable[Candidate], every: Iterable[Candidate]) -> list[Candidate]:
        """Return those to be tried later in whose place no other edit was confirmed, and refuse the
        rest."""
        trials = self.contest.trials
        labels = {
            edit: one.edit.label
            for one in every
            for edit in (one.edit.id, *one.same_as)
            if edit in trials and trials[edit].state == "confirmed"
        }
        needed = []
        for one in later:
            if one.edit.id in trials:
                continue
            label = labels.get(one.edit.instead_of or "")
            if label is None:
                needed.append(one)
            else:
                self.contest.refuse(one, f"Another change for this problem is confirmed: {label}.")
        return needed

    def _one_by_one(self) -> None:
        while self.contest.step():
            if any(trial.speedup is not None for trial in self.contest.trials.values()):
                self._pull_alone(PULLS_SHARE)

    def _pull_alone(self, share: float) -> None:
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


def _may_help_others(one: Tried) -> bool:
    """Return True if its rounds don't say that it makes the loop slower."""
    return len(one.ratios.pairs) >= FEWEST_ROUNDS and one.estimate.high >= TRIED_AGAIN


def _needs_base(edit: Edit) -> bool:
    """Return True if it is to be compared with the loop as written alone: its gain is of what comes
    seldom, or it stands in for another edit."""
    return saves_pauses(edit) or saves_traces(edit) or edit.instead_of is not None


def _is_early(one: Candidate, turns: dict[str, int]) -> bool:
    """Return True if it is tried once those of the first turn are decided, whatever they show."""
    return turns[one.edit.id] == 1 and one.edit.instead_of is None


def _turn(one: Candidate, others_fail: bool) -> int:
    """Return 0 for an edit that is tried at once, or the position of one that comes later."""
    # One that only informs, for which nothing says how much it may gain, would take the time in
    # which those of failed rules are tried together: on a loop that waits for input,
    # `steps_per_execution` took 28 of 83 s.
    if one.edit.instead_of is not None or (others_fail and not one.fails and one.at_most <= 1.0):
        return 1
    # Pauses of iterators are counted while other edits are tried, too.
    if saves_pauses(one.edit):
        return 2
    # The patch leaves these edits out, so they get the time that edits of failed rules leave.
    return 3 if one.changes_hyper_parameter and (others_fail or not one.fails) else 0


def _time_per_batch(blocks: Sequence[BlockRun]) -> PipelineAlone:
    found = estimate([block.step_ms for block in blocks])
    return PipelineAlone(step_ms=round(found.value, 4), ci95_ms=found.interval, blocks=found.rounds)
