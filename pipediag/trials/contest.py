"""Each edit against the pipeline as written, a few at a time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pipediag.session.edits import ENOUGH_THE_SAME, traces_otherwise
from pipediag.session.trials import WORTHWHILE, Trial
from pipediag.trials.arms import ArmRefusedError
from pipediag.trials.bench import BASE_ARM, BLOCK_S, Bench, Round
from pipediag.trials.candidates import Candidate
from pipediag.trials.events import Decided
from pipediag.trials.first_calls import made_graph
from pipediag.trials.ratios import Ratios
from pipediag.trials.statistics import (
    FEWEST_ROUNDS,
    LOOKS,
    MOST_ROUNDS,
    Decision,
    Estimate,
)

MOST_AT_ONCE = 4
"""More would stretch a round until the machine drifts within it."""

FOR_ANOTHER = 0.6
"""Share of the time left within which all that is tried at once must come to its first look before
another edit is tried beside it: where steps are long, four at once were all left undecided. Own
choice."""

RESERVE = 0.25
"""Share of the budget that two confirmed edits keep for being measured together, and more of a
small one: a first look at three arms, up to half of it."""


_MARGIN = 1.1
"""Times what was lacking. Own choice: the next run's waits are not those of this one."""
MADE_ANEW = 0.1
"""Of the time left, what it may take to trace the step as written once more, judged by what the
first edit's took. Own choice."""

LONGEST_BLOCK_S = 4 * BLOCK_S
SPENT = 0.8
"""Of the time that is left, by blocks that are longer than the shortest: the rest is for whatever
takes longer than it did."""

KEPT_FOR_MORE = 0.5
"""Share of the budget into which no block grows longer while edits may follow that wait for what
comes of these. Own choice."""


@dataclass(frozen=True)
class Confirmed:
    """An edit that is worth it by itself."""

    candidate: Candidate
    estimate: Estimate
    ratios: Ratios


@dataclass
class _Live:
    candidate: Candidate
    caveats: list[str]
    ratios: Ratios = field(default_factory=Ratios)
    same_elements: int | None = None

    def learn(self, same_elements: int | None) -> None:
        """Drop the condition of a cache whose elements were the same in two passes."""
        self.same_elements = same_elements
        if same_elements is not None and same_elements >= ENOUGH_THE_SAME:
            self.candidate = replace(self.candidate, condition=None)


class Contest:
    """Edits enter in their order, and leave when they are decided, fail or time is over."""

    def __init__(self, bench: Bench, share: float = 1.0) -> None:
        self.trials: dict[str, Trial] = {}
        self.epochs_need_s: float | None = None
        """Seconds with which edits of whole epochs would not have been turned away."""
        self.confirmed: list[Confirmed] = []
        self.more_to_come = False
        """Whether edits may enter once these are decided, which need time as well."""
        self._bench = bench
        self._share = share
        self._waiting: deque[Candidate] = deque()
        self._live: list[_Live] = []
        self._last_block_s = BLOCK_S

    def enter(self, candidates: Iterable[Candidate]) -> None:
        """Edits that wait for their turn, behind those that wait already."""
        self._waiting.extend(candidates)

    def step(self) -> bool:
        """Let edits enter, run one round and judge; False when nothing is left that can be tried.

        Raises:
            BaseRefusedError: the pipeline as written failed.
            LostError: the executor is gone.
        """
        self._admit()
        self._give_up_what_no_longer_fits()
        if not self._live:
            self._turn_away_the_waiting()
            return False
        arms = [BASE_ARM, *(one.candidate.arm for one in self._live)]
        self._judge(self._bench.round(arms, self._block_s()))
        return True

    def any_measured(self) -> bool:
        """Whether a speed-up is known of at least one edit."""
        return any(trial.speedup is not None for trial in self.trials.values())

    def refuse(self, candidate: Candidate, reason: str) -> None:
        """An edit that is not tried at all."""
        self._settle(candidate, Trial(state="not_tried", reason=reason))

    def end(self, reason: str, culprit: str | None = None) -> None:
        """No further block can run: judge what has enough rounds, but not the arm that ended it."""
        for one in self._live:
            decision = one.ratios.look(last=True)
            if decision is None or one.candidate.edit.id == culprit:
                self.refuse(one.candidate, reason)
            else:
                self._decide(one, decision, unclear=reason)
        for candidate in self._waiting:
            self.refuse(candidate, reason)
        self._live.clear()
        self._waiting.clear()

    def _block_s(self) -> float:
        """Longer where first looks left it open and time is left: what scatters from step to step
        averages out within a block. The time is spread over the rounds that may still come."""
        rounds = min(len(one.ratios) for one in self._live)
        if self._waiting or rounds < LOOKS[0]:
            return BLOCK_S
        to_come_s = (MOST_ROUNDS - rounds) * self._cost_with()
        more = self.more_to_come and not self.confirmed
        kept_s = KEPT_FOR_MORE * self._bench.budget_s if more else 0.0
        stretched = self._last_block_s * SPENT * (self._time_s() - kept_s) / to_come_s
        self._last_block_s = min(max(stretched, BLOCK_S), LONGEST_BLOCK_S)
        return self._last_block_s

    def _time_s(self) -> float:
        return self._bench.left_s() - self._kept_for_the_combination_s()

    def _kept_for_the_combination_s(self) -> float:
        if sum(one.candidate.left_out_of_combination is None for one in self.confirmed) < 2:
            return 0.0
        budget_s = self._bench.budget_s
        first_look_s = LOOKS[0] * self._bench.cost_s([BASE_ARM] * 3)
        return min(max(RESERVE * budget_s, first_look_s), budget_s / 2)

    def _admit(self) -> None:
        while self._waiting and len(self._live) < MOST_AT_ONCE:
            # One alone may be judged after fewer rounds; beside others it would cost them theirs.
            rounds = LOOKS[0] if self._live else FEWEST_ROUNDS
            given_s = self._time_s() * (FOR_ANOTHER if self._live else 1.0)
            if self._needed_s(self._waiting[0], rounds) > given_s:
                return
            candidate = self._waiting.popleft()
            # Before it is built: if that ends the process, it is known which edit it was.
            entering = _Live(candidate, caveats=[])
            self._live.append(entering)
            began_s = self._bench.used_s()
            try:
                preparation = self._bench.prepare(candidate.arm, candidate.edit.label)
            except ArmRefusedError as error:
                self._live.remove(entering)
                self.refuse(candidate, str(error))
            else:
                entering.caveats = self._caveats(candidate, preparation.left_out)
                entering.learn(preparation.same_elements)
                self._trace_as_it_is(candidate, self._bench.used_s() - began_s)

    def _trace_as_it_is(self, candidate: Candidate, took_s: float) -> None:
        """For what the edit's own trace is more than; where that leaves the rounds their time."""
        changes = candidate.edit.changes
        if not traces_otherwise(changes) or made_graph(changes):
            return
        if took_s <= MADE_ANEW * self._time_s():
            self._bench.make_base_anew()

    def _needed_s(self, candidate: Candidate, rounds: int) -> float:
        """To build it and so many rounds. What is to shorten the waits of whole epochs is taken to
        have a long one in its first block alone: if it has not, that is known from then on."""
        building_s = self._bench.building_s()
        if not candidate.edit.whole_epoch:
            return building_s + rounds * self._cost_with(candidate)
        return building_s + rounds * self._cost_with() + self._bench.cost_s([candidate.arm])

    def _cost_with(self, *more: Candidate) -> float:
        arms = [one.candidate.arm for one in self._live] + [one.arm for one in more]
        return self._bench.cost_s([BASE_ARM, *arms])

    def _caveats(self, candidate: Candidate, left_out: list[str]) -> list[str]:
        of_all = [candidate.edit.caveat, self._bench.taken_by.caveat]
        return list(dict.fromkeys([*(said for said in of_all if said), *left_out]))

    def _give_up_what_no_longer_fits(self) -> None:
        while self._live and self._cost_with() > self._time_s():
            slowest = max(self._live, key=lambda one: self._bench.cost_s([one.candidate.arm]))
            self._live.remove(slowest)
            self._give_up(slowest)

    def _give_up(self, one: _Live) -> None:
        rounds = len(one.ratios)
        reason = f"The time for trials ended after {_rounds(rounds)}."
        decision = one.ratios.look(last=True)
        if decision is not None:
            self._decide(one, decision, unclear=reason)
        elif rounds == 0:
            self.refuse(one.candidate, self._no_time(one.candidate))
        else:
            self._settle(
                one.candidate,
                Trial(
                    state="inconclusive",
                    reason=f"{reason[:-1]}, too few to judge.",
                    blocks=rounds,
                    consumer=self._bench.taken_by.consumer,
                    caveats=one.caveats,
                ),
            )

    def _turn_away_the_waiting(self) -> None:
        for candidate in self._waiting:
            self.refuse(candidate, self._no_time(candidate))
        self._waiting.clear()

    def _no_time(self, candidate: Candidate) -> str:
        needed_s = self._needed_s(candidate, FEWEST_ROUNDS)
        reason = (
            f"No time left: the budget of {self._bench.budget_s:g} s has "
            f"{max(0.0, self._time_s()):.0f} s to spare; to build it and {_rounds(FEWEST_ROUNDS)} "
            f"take {needed_s:.0f} s."
        )
        if not candidate.edit.whole_epoch:
            return reason
        kept_s = self._kept_for_the_combination_s()
        used_s = self._bench.budget_s - self._bench.left_s()
        # What is kept grows with the budget.
        grows = 1.0 - RESERVE if kept_s else 1.0
        lacking_s = _MARGIN * max((used_s + needed_s) / grows, used_s + needed_s + kept_s)
        self.epochs_need_s = max(lacking_s, self.epochs_need_s or 0.0)
        return f"{reason} `--budget {math.ceil(lacking_s / self._share)}` should have room for it."

    def _judge(self, found: Round) -> None:
        for one in list(self._live):
            edit = one.candidate.edit.id
            if edit in found.refused:
                self._live.remove(one)
                self.refuse(one.candidate, found.refused[edit])
                continue
            one.ratios = one.ratios.with_round(found.ratio(edit, BASE_ARM.name))
            decision = one.ratios.look()
            if decision is not None:
                self._live.remove(one)
                self._decide(
                    one,
                    decision,
                    unclear=f"After {_rounds(MOST_ROUNDS)} the interval still holds {WORTHWHILE}.",
                )

    def _decide(self, one: _Live, decision: Decision, unclear: str) -> None:
        if decision.state == "confirmed":
            self.confirmed.append(Confirmed(one.candidate, decision.estimate, one.ratios))
        self._settle(
            one.candidate,
            Trial(
                state=decision.state,
                reason=unclear if decision.state == "inconclusive" else None,
                consumer=self._bench.taken_by.consumer,
                caveats=one.caveats,
                same_elements=one.same_elements,
                **one.ratios.figures(self._bench.taken_by, decision.estimate),
                **self._bench.once(one.candidate.arm),
            ),
        )

    def _settle(self, candidate: Candidate, trial: Trial) -> None:
        for edit in (candidate.edit.id, *candidate.same_as):
            self.trials[edit] = trial
        self._bench.tell(
            Decided(
                edit=candidate.edit.id,
                label=candidate.edit.label,
                state=trial.state,
                speedup=trial.speedup,
                ci95=trial.ci95,
                basis=trial.basis,
            )
        )


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"
