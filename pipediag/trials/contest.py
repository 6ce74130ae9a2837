"""Each edit against the pipeline as written, a few at a time, within the time that is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pipediag.estimates import (
    FEWEST_ROUNDS,
    LOOK_ALPHA,
    LOOKS,
    MOST_ROUNDS,
    Estimate,
    estimate,
    look,
)
from pipediag.facts.limits import WORTH_DOING
from pipediag.session.edits import ENOUGH_THE_SAME, saves_pauses, saves_traces
from pipediag.session.findings import without_its_first
from pipediag.session.messages import BlockRun
from pipediag.session.trials import WORTHWHILE, Trial
from pipediag.trials import Decided, VariantRefusedError
from pipediag.trials.bench import (
    BASE_VARIANT,
    BLOCK_S,
    Bench,
    Ratios,
)
from pipediag.trials.candidates import Candidate
from pipediag.vocabulary import BASE

MOST_AT_ONCE = 4
"""Most edits tried at once: more would stretch a round until the machine drifts within it."""

FOR_ANOTHER = 0.6
"""Share of the time left within which all edits tried at once must have their first look if another
one joins: where steps are long, four at once were all left undecided. Own choice."""

RESERVE = 0.25
"""Share of the budget kept for measuring two confirmed edits together; of a small budget, the time
of a first look at three variants, up to half of it. Own choice."""

LONGEST_BLOCK_S = 4 * BLOCK_S
SPENT = 0.8
"""Share of the time left for longer blocks: the rest is for whatever takes longer than it did."""

KEPT_FOR_MORE = 0.5
"""Share of the budget that longer blocks must leave while further edits may follow. Own choice."""

MUCH = 1.3
"""Speed-up of a confirmed edit from which others that gain little take no more rounds. Own choice:
in one project such edits took the time in which a cache was to be added to it."""


@dataclass
class Tried:
    """An edit whose rounds are being run, or were."""

    candidate: Candidate
    ratios: Ratios
    caveats: list[str] = field(default_factory=list)
    same_elements: int | None = None

    @property
    def estimate(self) -> Estimate:
        return estimate(self.ratios.steps, LOOK_ALPHA)


class Contest:
    """Edits enter in their order, and leave when they are decided, fail or time is over."""

    def __init__(self, bench: Bench) -> None:
        self.trials: dict[str, Trial] = {}
        self.confirmed: list[Tried] = []
        self.undecided: list[Tried] = []
        """Edits that some rounds did not confirm."""
        self.more_to_come = False
        """True if further edits may enter once these are decided, and need time as well."""
        self._bench = bench
        self._waiting: deque[Candidate] = deque()
        self._live: list[Tried] = []
        self._last_block_s = BLOCK_S
        self._taken = 0

    def take_confirmed(self) -> list[Tried]:
        """Return the edits that were confirmed since this was called before."""
        fresh = self.confirmed[self._taken :]
        self._taken = len(self.confirmed)
        return fresh

    def enter(self, candidates: Iterable[Candidate]) -> None:
        self._waiting.extend(candidates)

    def step(self) -> bool:
        self._admit()
        if self._waiting and self._give_way():
            self._admit()
        self._end_what_gains_little()
        while self._live and self._cost_with() > self._time_s():
            slowest = max(self._live, key=lambda one: self._bench.cost_s([one.candidate.variant]))
            self._live.remove(slowest)
            self._give_up(slowest)
        if not self._live:
            for candidate in self._waiting:
                self.refuse(candidate, self._no_time(candidate))
            self._waiting.clear()
            return False
        variants = [BASE_VARIANT, *(one.candidate.variant for one in self._live)]
        self._judge(*self._bench.round(variants, self._block_s()))
        return True

    def refuse(self, candidate: Candidate, reason: str) -> None:
        self.settle(candidate, Trial(state="not_tried", reason=reason))

    def end(self, reason: str, culprit: str | None) -> None:
        """Judge what has enough rounds, except the variant that ended the trials, if one did."""
        for one in self._live:
            decision = look(one.ratios.steps, last=True)
            if decision is None or one.candidate.edit.id == culprit:
                self.refuse(one.candidate, reason)
            else:
                self._decide(one, decision, unclear=reason)
        for candidate in self._waiting:
            self.refuse(candidate, reason)
        self._live.clear()
        self._waiting.clear()

    def _block_s(self) -> float:
        """Return the length of the next blocks: longer where first looks decided nothing and time
        is left, which is spread over the rounds that may still come."""
        rounds = min(len(one.ratios.pairs) for one in self._live)
        if self._waiting or rounds < LOOKS[0]:
            self._last_block_s = BLOCK_S
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
        able = [one.candidate.left_out_of_combination is None for one in self.confirmed]
        fresh, taken = sum(able[self._taken :]), any(able[: self._taken])
        if fresh < (1 if taken else 2):
            return 0.0
        budget_s = self._bench.budget_s
        first_look_s = LOOKS[0] * self._bench.cost_s([BASE_VARIANT] * 3)
        return min(max(RESERVE * budget_s, first_look_s), budget_s / 2)

    def _admit(self) -> None:
        while self._waiting and len(self._live) < MOST_AT_ONCE:
            # Where nothing runs, the first that fits enters: one that takes long keeps no other
            # out.
            able = list(self._waiting)[:1] if self._live else list(self._waiting)
            candidate = next(filter(self._fits, able), None)
            if candidate is None:
                return
            self._waiting.remove(candidate)
            # Before it is built: if that ends the process, it is known which edit it was.
            entering = Tried(candidate, Ratios(self._bench.taken_by))
            self._live.append(entering)
            began_s = self._bench.used_s()
            try:
                prepared = self._bench.prepare(candidate.variant, candidate.edit.label)
            except VariantRefusedError as error:
                self._live.remove(entering)
                self.refuse(candidate, str(error))
                continue
            caveats = [candidate.edit.caveat, *self._bench.taken_by.caveats]
            entering.caveats = list(dict.fromkeys(one for one in caveats if one))
            entering.same_elements = same = prepared.same_elements
            if same is not None and same >= ENOUGH_THE_SAME:
                condition = without_its_first(candidate.condition)
                entering.candidate = replace(candidate, condition=condition)
            took_s = self._bench.used_s() - began_s
            self._bench.retrace_base_for(candidate.edit.changes, took_s, self._time_s())

    def _fits(self, candidate: Candidate) -> bool:
        # An edit alone may be judged after fewer rounds; with others it would take their time.
        rounds = LOOKS[0] if self._live else FEWEST_ROUNDS
        given_s = self._time_s() * (FOR_ANOTHER if self._live else 1.0)
        return self._needed_s(candidate, rounds) <= given_s

    def _needed_s(self, candidate: Candidate, rounds: int) -> float:
        """Return the time to build it and to run so many rounds. One that shortens the waits of
        whole epochs is taken to have a long wait in its first block alone."""
        building_s = self._bench.building_s
        if not candidate.edit.whole_epoch:
            return building_s + rounds * self._cost_with(candidate)
        return building_s + rounds * self._cost_with() + self._bench.cost_s([candidate.variant])

    def _cost_with(self, *more: Candidate) -> float:
        listed = [*(one.candidate for one in self._live), *more]
        return self._bench.cost_s([BASE_VARIANT, *(one.variant for one in listed)])

    def _give_way(self) -> bool:
        """End edits that a first look left undecided where one that waits may gain more than they
        can, and fits then."""
        best = max(self._waiting, key=lambda one: one.at_most)
        less = [
            one
            for one in self._live
            if len(one.ratios.pairs) >= LOOKS[0] and one.estimate.high < best.at_most
        ]
        before = self._live
        self._live = [one for one in before if one not in less]
        if not self._fits(best):
            self._live = before
            return False
        for one in less:
            self._give_up(one, f"It gave way to what may gain more, {best.edit.label},")
        return bool(less)

    def _end_what_gains_little(self) -> None:
        """End edits that gain little by a first look, where another one is confirmed to gain much:
        the time is for what adds to it."""
        able = (one for one in self.confirmed if one.candidate.left_out_of_combination is None)
        if max((one.estimate.low for one in able), default=1.0) < MUCH:
            return
        for one in list(self._live):
            edit, looked = one.candidate.edit, len(one.ratios.pairs) in LOOKS
            if saves_traces(edit) or saves_pauses(edit):
                continue  # they gain in what is not in steps
            if looked and one.estimate.high < WORTH_DOING:
                self._live.remove(one)
                self._give_up(one, "Its time went to what gains more")

    def _give_up(self, one: Tried, why: str = "The time for trials ended") -> None:
        rounds = len(one.ratios.pairs)
        ended = f"{why} after {_rounds(rounds)}"
        decision = look(one.ratios.steps, last=True)
        if decision is not None:
            self._decide(one, decision, unclear=f"{ended}.")
        elif rounds == 0:
            self.refuse(one.candidate, self._no_time(one.candidate))
        else:
            trial = Trial(
                state="inconclusive",
                reason=f"{ended}, too few to judge.",
                blocks=rounds,
                consumer=self._bench.taken_by.consumer,
                caveats=one.caveats,
            )
            self.undecided.append(one)
            self.settle(one.candidate, trial)

    def _no_time(self, candidate: Candidate) -> str:
        needed_s = self._needed_s(candidate, FEWEST_ROUNDS)
        reason = (
            f"No time left: the budget of {self._bench.budget_s:g} s has "
            f"{max(0.0, self._time_s()):.0f} s to spare; building it and running "
            f"{_rounds(FEWEST_ROUNDS)} takes {needed_s:.0f} s."
        )
        longer = " A longer `--budget` would have room for it."
        return f"{reason}{longer}" if candidate.edit.whole_epoch else reason

    def _judge(self, blocks: dict[str, BlockRun], refused: dict[str, str]) -> None:
        for one in list(self._live):
            edit = one.candidate.edit.id
            if edit in refused:
                self._live.remove(one)
                self.refuse(one.candidate, refused[edit])
                continue
            one.ratios.pairs.append((blocks[edit], blocks[BASE]))
            decision = look(one.ratios.steps)
            if decision is not None:
                self._live.remove(one)
                unclear = f"After {_rounds(MOST_ROUNDS)} the interval still contains {WORTHWHILE}."
                self._decide(one, decision, unclear)

    def _decide(self, one: Tried, decision: Estimate, unclear: str) -> None:
        if decision.state == "confirmed":
            self.confirmed.append(one)
        else:
            self.undecided.append(one)
        trial = Trial(
            state=decision.state,
            reason=unclear if decision.state == "inconclusive" else None,
            consumer=self._bench.taken_by.consumer,
            caveats=one.caveats,
            traces=self._bench.traces.get(one.candidate.variant.name),
            same_elements=one.same_elements,
            **self._bench.speed_up(one.candidate.variant, one.ratios, decision),
        )
        self.settle(one.candidate, trial)

    def settle(self, candidate: Candidate, trial: Trial) -> None:
        """Keep what came of an edit, and of others that make the same changes."""
        for edit in (candidate.edit.id, *candidate.same_as):
            self.trials[edit] = trial
        self._bench.on_event(Decided(candidate.edit.label, trial))


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"
