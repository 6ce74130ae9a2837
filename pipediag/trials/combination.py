"""All confirmed edits together: added one by one, kept where they add something."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from pipediag.session.trials import Combined, DroppedEdit
from pipediag.trials.arms import Arm, ArmRefusedError
from pipediag.trials.bench import BASE_ARM, BaseRefusedError, Bench, LostError
from pipediag.trials.candidates import Candidate, together
from pipediag.trials.contest import Confirmed
from pipediag.trials.ratios import Ratios
from pipediag.trials.statistics import (
    FEWEST_ROUNDS,
    LOOK_ALPHA,
    LOOKS,
    Decision,
)

FINAL_ROUNDS = 10
"""Of all that are in against base. Their number is fixed beforehand, so 95 % means 95 %."""


def combine(
    bench: Bench, confirmed: Iterable[Confirmed], ended: str | None = None
) -> Combined | None:
    """Start from the best edit, add the others in the order of their gain, measure what is in.

    What the user has to decide on first (hyper-parameters, conditions) is left out; None where
    nothing else is confirmed. `ended` says why no further
    block can run; a process that is lost on the way ends it likewise, and what was measured until
    then counts.
    """
    ranked = sorted(confirmed, key=lambda one: -one.estimate.value)
    able = [one for one in ranked if one.candidate.left_out_of_combination is None]
    if not able:
        return None
    combination = _Combination(bench, able[0])
    for one in ranked:
        reason = one.candidate.left_out_of_combination
        if reason is not None:
            combination.drop(one.candidate, reason)
    waiting = deque(one.candidate for one in able[1:])
    try:
        while waiting and not ended:
            combination.try_adding(waiting[0])
            waiting.popleft()
        if not ended:
            combination.measure()
    except (LostError, BaseRefusedError) as error:
        ended = str(error)
    if ended:
        for candidate in waiting:
            combination.drop(candidate, ended)
    return combination.result()


class _Combination:
    def __init__(self, bench: Bench, best: Confirmed) -> None:
        self._bench = bench
        self._members = [best.candidate]
        self._ratios = best.ratios
        self._estimate = best.estimate
        self._dropped: list[DroppedEdit] = []

    def drop(self, candidate: Candidate, reason: str) -> None:
        self._dropped.append(DroppedEdit(edit=candidate.edit.id, reason=reason))

    def try_adding(self, candidate: Candidate) -> None:
        """Keep an edit if it makes what is in already worth-while faster."""
        arm = together([*self._members, candidate])
        names = self._names()
        rounds_s = FEWEST_ROUNDS * self._bench.cost_s(self._rounds_of_all(arm))
        if self._bench.building_s() + rounds_s > self._bench.left_s():
            self.drop(candidate, f"No time left to try it together with {names}.")
            return
        try:
            self._bench.prepare(arm, f"{candidate.edit.label} on top of {names}")
            decision, against_base = self._marginal(arm)
        except ArmRefusedError as error:
            self.drop(candidate, f"It can't be tried together with {names}: {error}")
            return
        if decision is None:
            self.drop(candidate, f"No time left to try it together with {names}.")
        elif decision.state == "confirmed":
            self._members.append(candidate)
            # Stands until rounds of their own have been run.
            self._ratios = against_base
            self._estimate = against_base.estimate(LOOK_ALPHA)
        elif decision.state == "refuted":
            adds = "Makes it slower" if decision.estimate.high < 1.0 else "Adds nothing"
            self.drop(candidate, f"{adds} once {names} is in: {decision.estimate}.")
        else:
            self.drop(
                candidate,
                f"Whether it adds anything once {names} is in stayed open after "
                f"{decision.estimate.rounds} rounds: {decision.estimate}.",
            )

    def measure(self) -> None:
        """All that are in against base, in rounds of their own; one alone has had its rounds."""
        if len(self._members) == 1:
            return
        arm = together(self._members)
        ratios = Ratios()
        while len(ratios) < FINAL_ROUNDS and self._left_for([BASE_ARM, arm]):
            found = self._bench.round([BASE_ARM, arm])
            if found.refused:
                break
            ratios = ratios.with_round(found.ratio(arm.name, BASE_ARM.name))
        if len(ratios) >= FEWEST_ROUNDS:
            self._ratios, self._estimate = ratios, ratios.estimate()

    def result(self) -> Combined:
        return Combined(
            findings=[one.edit.id for one in self._members],
            dropped=self._dropped,
            **self._ratios.figures(self._bench.taken_by, self._estimate),
            **self._bench.once(together(self._members)),
        )

    def _marginal(self, arm: Arm) -> tuple[Decision | None, Ratios]:
        current = together(self._members)
        arms = self._rounds_of_all(arm)
        ratios = against_base = Ratios()
        while self._fits(arms, len(ratios)):
            found = self._bench.round(arms)
            if found.refused:
                raise ArmRefusedError(" ".join(found.refused.values()))
            ratios = ratios.with_round(found.ratio(arm.name, current.name))
            against_base = against_base.with_round(found.ratio(arm.name, BASE_ARM.name))
            decision = ratios.look()
            if decision is not None:
                return decision, against_base
        return ratios.look(last=True), against_base

    def _rounds_of_all(self, arm: Arm) -> list[Arm]:
        return [BASE_ARM, together(self._members), arm]

    def _fits(self, arms: list[Arm], rounds: int) -> bool:
        # These rounds hold the base as well, so rounds of their own for all that are in matter less
        # than a first look, and more than the later ones.
        final = FEWEST_ROUNDS * self._bench.cost_s([BASE_ARM, arms[-1]])
        kept = final if rounds >= LOOKS[0] else 0.0
        return self._bench.cost_s(arms) + kept <= self._bench.left_s()

    def _left_for(self, arms: list[Arm]) -> bool:
        return self._bench.cost_s(arms) <= self._bench.left_s()

    def _names(self) -> str:
        return " and ".join(one.edit.label for one in self._members)
