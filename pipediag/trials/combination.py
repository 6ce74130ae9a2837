"""Confirmed edits together, and on top of them edits that showed no gain alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pipediag.estimates import (
    FEWEST_ROUNDS,
    LOOK_ALPHA,
    LOOKS,
    Estimate,
    estimate,
    look,
)
from pipediag.facts.run_gain import fills_a_cache
from pipediag.session.trials import REFUSED_TOGETHER, WORTHWHILE, Combined, DroppedEdit, Trial
from pipediag.trials import Variant, VariantRefusedError
from pipediag.trials.bench import BASE_VARIANT, Bench, Ratios, TrialsEndedError
from pipediag.trials.candidates import Candidate, together
from pipediag.trials.contest import Tried
from pipediag.vocabulary import BASE

ADDS, NOT_SLOWER = 1.1, 0.95
"""Speed-up on top of others, and lower end of its interval, from which a confirmed edit stays where
rounds decide nothing. Own choice: a noisy machine showed a cache of 1.80x as 1.17x [0.98, 1.36]."""

FINAL_ROUNDS = 10
"""Number of rounds of all chosen edits against base; fixed beforehand, so that 95 % means 95 %."""


@dataclass(frozen=True)
class OfRun:
    """Speed-ups of the whole run, where they are known."""

    by_edit: Callable[[str], float | None] = lambda _edit: None
    """By an edit that was tried, by its id."""
    by_all: Callable[[Combined], float | None] = lambda _combined: None


@dataclass(frozen=True)
class _Chosen:
    """Edits that are in, and their rounds against base."""

    edits: tuple[Tried, ...]
    ratios: Ratios
    estimate: Estimate
    filling: Estimate | None = None
    """Speed-up, by what was in before it, of the epoch that fills a cache."""

    @property
    def members(self) -> list[Candidate]:
        return [one.candidate for one in self.edits]

    def with_(self, one: Tried, against_base: Ratios) -> _Chosen:
        """Return these and another edit, with rounds of all of them against base. They hold until
        all have run rounds of their own."""
        fills = fills_a_cache(one.candidate.edit) and self.filling is None
        filling = self.estimate if fills else self.filling
        return _Chosen((*self.edits, one), *_judged(against_base), filling)


def _judged(ratios: Ratios) -> tuple[Ratios, Estimate]:
    return ratios, estimate(ratios.steps, LOOK_ALPHA)


@dataclass(frozen=True)
class _Rounds:
    """Rounds of those that are in, with an edit on top of them, and of the pipeline as written."""

    decision: Estimate | None
    on_top: Ratios
    """Ratios of both with the edit to both without."""
    with_it: Ratios
    without: Ratios
    """Ratios to base."""


class Combination:
    """Edits that make the loop faster together, and those that were left out, with the reason.

    Methods that run something raise TrialsEndedError where the executor is gone; the edits that are
    in by then stay.
    """

    def __init__(self, bench: Bench, of_run: OfRun) -> None:
        self._bench = bench
        self._of_run = of_run
        self._chosen: _Chosen | None = None
        self._dropped: list[DroppedEdit] = []
        self._added_again: list[Tried] = []
        self._measured = ""
        """Name of the variant that was measured in rounds of its own."""

    @property
    def speedup(self) -> float:
        """Speed-up by what is in; 1 if nothing is."""
        return self._chosen.estimate.value if self._chosen is not None else 1.0

    @property
    def helps_the_run(self) -> bool:
        """True if something is in, and the run does not lose by it as far as is known."""
        result = self.result()
        gain = self._of_run.by_all(result) if result is not None else None
        return self.speedup > 1.0 and (gain is None or gain > 1.0)

    @property
    def _members(self) -> list[Candidate]:
        return self._chosen.members if self._chosen is not None else []

    def take(self, confirmed: Iterable[Tried], ended: str | None = None) -> None:
        """Start from the best edit, and add the others in the order of their gain.

        Caches come behind edits that gain much: a trial finds them full, but how long the epoch
        that fills them takes depends on the others. Edits on which the user has to decide first are
        left out. `ended` says why no further block can run.
        """
        ranked = sorted(
            confirmed, key=lambda one: (fills_a_cache(one.candidate.edit), -one.estimate.value)
        )
        waiting = deque[Tried]()
        for one in ranked:
            if (reason := one.candidate.left_out_of_combination) is not None:
                self._drop(one.candidate, reason)
            elif self._chosen is not None:
                waiting.append(one)
            else:
                self._chosen = _begun(one)
        try:
            while waiting and not ended:
                again = self._add(waiting[0])
                waiting.popleft()
                waiting.extendleft(reversed(again))
        except TrialsEndedError as error:
            ended = str(error)
            raise
        finally:
            for one in waiting:
                self._leave_out(one, ended or "")

    def try_on_top(self, candidate: Candidate) -> Trial:
        """Try an edit that is not confirmed alone on top of those chosen, and keep it if the run
        gains by it: where one stage was slow, a change of another one showed nothing."""
        bench, names = self._bench, [one.edit.id for one in self._members]
        current, with_it = together(self._members), together([*self._members, candidate])
        if self._is_other_way(candidate):
            return Trial(state="not_tried", reason="Another change for this problem is confirmed.")
        if not self._has_time(current, with_it, FEWEST_ROUNDS):
            return Trial(state="not_tried", reason=self._no_time(candidate))
        began_s = bench.used_s()
        try:
            bench.prepare(with_it, self._on_top(candidate))
            bench.retrace_base_for(candidate.edit.changes, bench.used_s() - began_s, bench.left_s())
            rounds = self._compare(current, with_it, hidden=True)
        except VariantRefusedError as error:
            return Trial(state="not_tried", reason=str(error))
        decision = rounds.decision
        if decision is None:
            return Trial(state="not_tried", reason=self._no_time(candidate))
        state, reason = decision.state, None
        caveats = [one for one in (candidate.edit.caveat, *bench.taken_by.caveats) if one]
        if state == "inconclusive":
            on_top = f"{decision.rounds} rounds on top of {self._names()}"
            reason = f"After {on_top} the interval still contains {WORTHWHILE}."
        elif state == "confirmed" and not self._keep(candidate, rounds, caveats):
            state, reason = "inconclusive", "It makes steps faster, but not the whole run."
        return Trial(
            state=state,
            reason=reason,
            consumer=bench.taken_by.consumer,
            caveats=caveats,
            on_top_of=names,
            **bench.speed_up(Variant(with_it.name), rounds.on_top, decision),
        )

    def _keep(self, candidate: Candidate, rounds: _Rounds, caveats: list[str]) -> bool:
        """Put an edit in, unless what it takes once costs the run more than its steps gain."""
        assert self._chosen is not None
        ratios, found = _judged(rounds.without)
        without = replace(self._chosen, ratios=ratios, estimate=found)
        with_it = self._chosen.with_(Tried(candidate, rounds.on_top, caveats), rounds.with_it)
        known = [self._of_run.by_all(self._result_of(one)) for one in (without, with_it)]
        gains = [one for one in known if one is not None]
        if len(gains) == 2 and gains[1] <= gains[0]:
            return False
        self._chosen = with_it
        return True

    def measure(self) -> None:
        """Measure all that is in against base, if it is more than one edit."""
        if self._chosen is None or len(self._members) < 2:
            return
        members = together(self._members)
        if members.name == self._measured:
            return
        variants = [BASE_VARIANT, members]
        ratios = Ratios(self._bench.taken_by)
        pairs = ratios.pairs
        while len(pairs) < FINAL_ROUNDS and self._bench.cost_s(variants) <= self._bench.left_s():
            blocks, refused = self._bench.round(variants)
            if refused:
                break
            pairs.append((blocks[members.name], blocks[BASE]))
        if len(pairs) >= FEWEST_ROUNDS:
            self._chosen = replace(self._chosen, ratios=ratios, estimate=estimate(ratios.steps))
            self._measured = members.name

    def result(self) -> Combined | None:
        """Return what is in with its speed-up; None where nothing is."""
        return self._result_of(self._chosen) if self._chosen is not None else None

    def _result_of(self, chosen: _Chosen) -> Combined:
        return Combined(
            findings=[one.edit.id for one in chosen.members],
            dropped=self._dropped,
            **self._bench.speed_up(together(chosen.members), chosen.ratios, chosen.estimate),
            filling_speedup=round(chosen.filling.value, 4) if chosen.filling else None,
            filling_ci95=chosen.filling.interval if chosen.filling else None,
        )

    def _drop(self, candidate: Candidate, reason: str) -> None:
        self._dropped.append(DroppedEdit(edit=candidate.edit.id, reason=reason))

    def _add(self, one: Tried) -> list[Tried]:
        """Try a confirmed edit on top of those chosen; return others to be added next."""
        candidate = one.candidate
        if (other := self._is_other_way(candidate)) is not None:
            self._drop(candidate, f"It changes the same in another way as {other.edit.label}.")
            return []
        current, with_it = together(self._members), together([*self._members, candidate])
        if not self._has_time(current, with_it, 0):
            return self._leave_out(one, self._no_time(candidate))
        both = f"{self._names()} and {candidate.edit.label}"
        try:
            self._bench.prepare(with_it, self._on_top(candidate))
            rounds = self._compare(current, with_it)
        except VariantRefusedError as error:
            reason = f"{REFUSED_TOGETHER}: {both}. {error}"
            return self._leave_out(one, reason, refused=True)
        decision = rounds.decision
        if decision is None:
            return self._leave_out(one, self._no_time(candidate))
        # Both are confirmed alone, so that what seems to be faster together stays together.
        seems_faster = decision.value >= ADDS and decision.low >= NOT_SLOWER
        if decision.state != "refuted" and (decision.low > 1.0 or seems_faster):
            assert self._chosen is not None
            self._chosen = self._chosen.with_(one, rounds.with_it)
            return []
        return self._leave_out(one, f"No further gain was shown of {both} together: {decision}.")

    def _is_other_way(self, candidate: Candidate) -> Candidate | None:
        """Return the edit that is in and changes the same operation for the same problem."""
        problem = candidate.problem
        return next((one for one in self._members if problem and one.problem == problem), None)

    def _leave_out(self, one: Tried, reason: str, *, refused: bool = False) -> list[Tried]:
        """Drop an edit that could not be judged on top of those chosen, or these if they gain less.

        Where several together were refused, the best of them stays, and this edit is to be added to
        it, and then the others; they are returned in that order.
        """
        assert self._chosen is not None
        if self._gains_no_more(one, self._chosen):
            self._drop(one.candidate, reason)
            return []
        best, *others = self._chosen.edits
        if refused and others and one not in self._added_again:
            self._added_again.append(one)
            self._chosen = _begun(best)
            return [one, *others]
        for member in self._members:
            self._drop(member, reason)
        self._chosen = _begun(one)
        return []

    def _gains_no_more(self, one: Tried, chosen: _Chosen) -> bool:
        """Return True if an edit gains no more than those chosen: of the run, where that is known,
        since a cache speeds up all epochs but the first."""
        best, *others = chosen.edits
        own, its = (self._of_run.by_edit(each.candidate.edit.id) for each in (one, best))
        if own is None or its is None or others:
            return one.estimate.value <= chosen.estimate.value
        return own <= its

    def _names(self) -> str:
        return " and ".join(one.edit.label for one in self._members)

    def _on_top(self, candidate: Candidate) -> str:
        return f"{candidate.edit.label} on top of {self._names()}"

    def _no_time(self, candidate: Candidate) -> str:
        return f"No time left to try them together: {self._names()} and {candidate.edit.label}."

    def _has_time(self, current: Variant, with_it: Variant, final_rounds: int) -> bool:
        """Return True if there is time to judge a variant, and for so many rounds at the end."""
        rounds_s = FEWEST_ROUNDS * self._bench.cost_s([BASE_VARIANT, current, with_it])
        final_s = final_rounds * self._bench.cost_s([BASE_VARIANT, with_it])
        return self._bench.building_s + rounds_s + final_s <= self._bench.left_s()

    def _compare(self, current: Variant, with_it: Variant, *, hidden: bool = False) -> _Rounds:
        """Run rounds until they decide on the second variant.

        An edit that was hidden has no more than a first look where that shows little.
        """
        variants = [BASE_VARIANT, current, with_it]
        ratios, against_base, without = (Ratios(self._bench.taken_by) for _ in range(3))
        decision = None
        while decision is None and self._fits(variants, count := len(ratios.pairs)):
            if hidden and count in LOOKS and estimate(ratios.steps).value < ADDS:
                break
            blocks, refused = self._bench.round(variants)
            if refused:
                raise VariantRefusedError(" ".join(refused.values()))
            ratios.pairs.append((blocks[with_it.name], blocks[current.name]))
            against_base.pairs.append((blocks[with_it.name], blocks[BASE]))
            without.pairs.append((blocks[current.name], blocks[BASE]))
            decision = look(ratios.steps)
        decision = decision or look(ratios.steps, last=True)
        return _Rounds(decision, ratios, against_base, without)

    def _fits(self, variants: list[Variant], rounds: int) -> bool:
        # These rounds hold the base as well, so rounds of their own for all that are in matter less
        # than a first look, and more than the later ones.
        final = FEWEST_ROUNDS * self._bench.cost_s([BASE_VARIANT, variants[-1]])
        kept = final if rounds >= LOOKS[0] else 0.0
        return self._bench.cost_s(variants) + kept <= self._bench.left_s()


def _begun(best: Tried) -> _Chosen:
    return _Chosen((best,), best.ratios, best.estimate)
