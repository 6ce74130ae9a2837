"""Each edit against the pipeline as written, a few at a time; then the confirmed ones together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
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
from pipediag.facts.run_gain import fills_a_cache
from pipediag.session.edits import ENOUGH_THE_SAME, traces_otherwise
from pipediag.session.findings import without_its_first
from pipediag.session.messages import BlockRun
from pipediag.session.trials import REFUSED_TOGETHER, WORTHWHILE, Combined, DroppedEdit, Trial
from pipediag.trials import Decided, Variant, VariantRefusedError
from pipediag.trials.bench import (
    BASE_VARIANT,
    BLOCK_S,
    Bench,
    Ratios,
    TrialsEndedError,
    makes_graph,
)
from pipediag.trials.candidates import Candidate, together
from pipediag.vocabulary import BASE

MOST_AT_ONCE = 4
"""Most edits tried at once: more would stretch a round until the machine drifts within it."""

FOR_ANOTHER = 0.6
"""Share of the time left within which all edits tried at once must have their first look if another
one joins: where steps are long, four at once were all left undecided. Own choice."""

RESERVE = 0.25
"""Share of the budget kept for measuring two confirmed edits together; of a small budget, the time
of a first look at three variants, up to half of it. Own choice."""

MADE_ANEW = 0.1
"""Share of the time left that tracing the step as written once more may take. Own choice."""

LONGEST_BLOCK_S = 4 * BLOCK_S
SPENT = 0.8
"""Share of the time left for longer blocks: the rest is for whatever takes longer than it did."""

KEPT_FOR_MORE = 0.5
"""Share of the budget that longer blocks must leave while further edits may follow. Own choice."""

ADDS, NOT_SLOWER = 1.1, 0.95
"""Speed-up on top of others, and lower end of its interval, from which a confirmed edit stays where
rounds decide nothing. Own choice: a noisy machine showed a cache of 1.80x as 1.17x [0.98, 1.36]."""

FINAL_ROUNDS = 10
"""Number of rounds of all chosen edits against base; fixed beforehand, so that 95 % means 95 %."""


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
        self.more_to_come = False
        """True if further edits may enter once these are decided, and need time as well."""
        self._bench = bench
        self._waiting: deque[Candidate] = deque()
        self._live: list[Tried] = []
        self._last_block_s = BLOCK_S

    def enter(self, candidates: Iterable[Candidate]) -> None:
        self._waiting.extend(candidates)

    def step(self) -> bool:
        self._admit()
        if self._waiting and self._give_way():
            self._admit()
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
        self._settle(candidate, Trial(state="not_tried", reason=reason))

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
        if sum(one.candidate.left_out_of_combination is None for one in self.confirmed) < 2:
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
            # Trace the step as written again, to compare with the edit's own trace, if enough time
            # is left for rounds.
            changes, took_s = candidate.edit.changes, self._bench.used_s() - began_s
            traced = traces_otherwise(changes) and not makes_graph(changes)
            if traced and took_s <= MADE_ANEW * self._time_s():
                self._bench.retrace_base()

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
            self._settle(one.candidate, trial)

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
        trial = Trial(
            state=decision.state,
            reason=unclear if decision.state == "inconclusive" else None,
            consumer=self._bench.taken_by.consumer,
            caveats=one.caveats,
            traces=self._bench.traces.get(one.candidate.variant.name),
            same_elements=one.same_elements,
            **self._bench.speed_up(one.candidate.variant, one.ratios, decision),
        )
        self._settle(one.candidate, trial)

    def _settle(self, candidate: Candidate, trial: Trial) -> None:
        for edit in (candidate.edit.id, *candidate.same_as):
            self.trials[edit] = trial
        self._bench.on_event(Decided(candidate.edit.label, trial))


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


OfRun = Callable[[str], float | None]
"""Returns the speed-up of the run by an edit that was tried, by its id, where that is known."""


def combine(
    bench: Bench, confirmed: Iterable[Tried], ended: str | None, of_run: OfRun
) -> Combined | None:
    """Start from the best edit, add the others in the order of their gain, and measure the result.

    Caches come behind edits that gain much: a trial finds them full, but how long the epoch that
    fills them takes depends on the others. Edits on which the user has to decide first are left
    out; None where nothing else is confirmed. `ended` says why no further block can run.
    """
    ranked = sorted(
        confirmed, key=lambda one: (fills_a_cache(one.candidate.edit), -one.estimate.value)
    )
    able = [one for one in ranked if one.candidate.left_out_of_combination is None]
    if not able:
        return None
    combination = _Combination(bench, able[0], of_run)
    for one in ranked:
        reason = one.candidate.left_out_of_combination
        if reason is not None:
            combination.drop(one.candidate, reason)
    waiting = deque(able[1:])
    try:
        while waiting and not ended:
            again = combination.add(waiting[0])
            waiting.popleft()
            waiting.extendleft(reversed(again))
        if not ended:
            combination.measure()
    except TrialsEndedError as error:
        ended = str(error)
    for one in waiting:
        combination.leave_out(one, ended or "")
    return combination.result()


class _Combination:
    def __init__(self, bench: Bench, best: Tried, of_run: OfRun) -> None:
        self._bench = bench
        self._of_run = of_run
        self._dropped: list[DroppedEdit] = []
        self._added_again: list[Tried] = []
        self._begin(best)

    @property
    def _members(self) -> list[Candidate]:
        return [one.candidate for one in self._chosen]

    def _begin(self, best: Tried) -> None:
        self._chosen = [best]
        self._ratios = best.ratios
        self._estimate = best.estimate
        self._filling: Estimate | None = None

    def drop(self, candidate: Candidate, reason: str) -> None:
        self._dropped.append(DroppedEdit(edit=candidate.edit.id, reason=reason))

    def leave_out(self, one: Tried, reason: str, *, refused: bool = False) -> list[Tried]:
        """Drop an edit that could not be judged on top of those chosen, or these if they gain less.

        Where several together were refused, the best of them stays, and this edit is to be added to
        it, and then the others; they are returned in that order.
        """
        if self._gains_no_more(one):
            self.drop(one.candidate, reason)
            return []
        best, *others = self._chosen
        if refused and others and one not in self._added_again:
            self._added_again.append(one)
            self._begin(best)
            return [one, *others]
        for member in self._members:
            self.drop(member, reason)
        self._begin(one)
        return []

    def _gains_no_more(self, one: Tried) -> bool:
        """Return True if an edit gains no more than those chosen: of the run, where that is known,
        since a cache speeds up all epochs but the first."""
        best, *others = self._chosen
        own, its = (self._of_run(each.candidate.edit.id) for each in (one, best))
        if own is None or its is None or others:
            return one.estimate.value <= self._estimate.value
        return own <= its

    def add(self, one: Tried) -> list[Tried]:
        """Try an edit on top of those chosen; return others to be added next."""
        candidate = one.candidate
        names = " and ".join(one.edit.label for one in self._members)
        no_time = f"No time left to try them together: {names} and {candidate.edit.label}."
        current, with_it = together(self._members), together([*self._members, candidate])
        rounds_s = FEWEST_ROUNDS * self._bench.cost_s([BASE_VARIANT, current, with_it])
        if self._bench.building_s + rounds_s > self._bench.left_s():
            return self.leave_out(one, no_time)
        try:
            self._bench.prepare(with_it, f"{candidate.edit.label} on top of {names}")
            decision, against_base = self._compare(current, with_it)
        except VariantRefusedError as error:
            both = f"{names} and {candidate.edit.label}"
            reason = f"{REFUSED_TOGETHER}: {both}. {error}"
            return self.leave_out(one, reason, refused=True)
        if decision is None:
            return self.leave_out(one, no_time)
        # Both are confirmed alone, so that what seems to be faster together stays together.
        seems_faster = decision.value >= ADDS and decision.low >= NOT_SLOWER
        faster = decision.low > 1.0 or seems_faster
        if decision.state != "refuted" and faster:
            if fills_a_cache(candidate.edit) and self._filling is None:
                self._filling = self._estimate
            self._chosen.append(one)
            # Holds until these edits have run rounds of their own.
            self._ratios = against_base
            self._estimate = estimate(against_base.steps, LOOK_ALPHA)
            return []
        both = f"{names} and {candidate.edit.label}"
        return self.leave_out(one, f"No further gain was shown of {both} together: {decision}.")

    def measure(self) -> None:
        if len(self._members) == 1:
            return
        members = together(self._members)
        variants = [BASE_VARIANT, members]
        ratios = Ratios(self._bench.taken_by)
        pairs = ratios.pairs
        while len(pairs) < FINAL_ROUNDS and self._bench.cost_s(variants) <= self._bench.left_s():
            blocks, refused = self._bench.round(variants)
            if refused:
                break
            pairs.append((blocks[members.name], blocks[BASE]))
        if len(pairs) >= FEWEST_ROUNDS:
            self._ratios, self._estimate = ratios, estimate(ratios.steps)

    def result(self) -> Combined:
        return Combined(
            findings=[one.edit.id for one in self._members],
            dropped=self._dropped,
            **self._bench.speed_up(together(self._members), self._ratios, self._estimate),
            filling_speedup=round(self._filling.value, 4) if self._filling else None,
            filling_ci95=self._filling.interval if self._filling else None,
        )

    def _compare(self, current: Variant, with_it: Variant) -> tuple[Estimate | None, Ratios]:
        variants = [BASE_VARIANT, current, with_it]
        ratios, against_base = (Ratios(self._bench.taken_by) for _ in range(2))
        while self._fits(variants, len(ratios.pairs)):
            blocks, refused = self._bench.round(variants)
            if refused:
                raise VariantRefusedError(" ".join(refused.values()))
            ratios.pairs.append((blocks[with_it.name], blocks[current.name]))
            against_base.pairs.append((blocks[with_it.name], blocks[BASE]))
            decision = look(ratios.steps)
            if decision is not None:
                return decision, against_base
        return look(ratios.steps, last=True), against_base

    def _fits(self, variants: list[Variant], rounds: int) -> bool:
        # These rounds hold the base as well, so rounds of their own for all that are in matter less
        # than a first look, and more than the later ones.
        final = FEWEST_ROUNDS * self._bench.cost_s([BASE_VARIANT, variants[-1]])
        kept = final if rounds >= LOOKS[0] else 0.0
        return self._bench.cost_s(variants) + kept <= self._bench.left_s()
