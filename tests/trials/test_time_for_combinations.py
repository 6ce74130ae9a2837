"""How the time that is left is shared between adding edits and measuring what is in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from pipediag.session.trials import Combined
from pipediag.trials.arms import Arm, Preparation
from pipediag.trials.outcome import TrialOutcome
from pipediag.trials.schedule import run_trials
from pipediag.trials.statistics import FEWEST_ROUNDS, LOOKS
from pipediag.vocabulary import BASE
from tests.factories import make_session
from tests.trials.bench import FakeExecutor, make_finding, try_edits

FIRST_TWO, ALL_THREE = "a + b", "a + b + c"


def tried(executor: FakeExecutor, names: str, budget_s: float) -> TrialOutcome:
    return try_edits(executor, [make_finding(name) for name in names], budget_s)


def combined(outcome: TrialOutcome) -> Combined:
    assert outcome.combined is not None
    return outcome.combined


def rounds_of(outcome: TrialOutcome, *arms: str) -> int:
    """How many rounds were of these arms and no others."""
    held: dict[int, set[str]] = {}
    for block in outcome.run.blocks:
        held.setdefault(block.round, set()).add(block.arm)
    return Counter(map(frozenset, held.values()))[frozenset(arms)]


def unclear(budget_s: float) -> TrialOutcome:
    """Of three edits the third stays open for as long as it is looked at."""
    executor = FakeExecutor({"a": 3.0, "b": 2.0, "c": 1.5}, {ALL_THREE: 6.0 * 1.03}, noise=0.05)
    return tried(executor, "abc", budget_s)


def test_a_first_look_goes_before_rounds_of_what_is_in() -> None:
    """Base is in the rounds of the look as well."""
    outcome = unclear(32.0)
    assert rounds_of(outcome, BASE, FIRST_TWO, ALL_THREE) == LOOKS[0]
    assert rounds_of(outcome, BASE, FIRST_TWO) < FEWEST_ROUNDS
    assert combined(outcome).findings == ["a", "b"]
    assert combined(outcome).blocks == LOOKS[0]


@pytest.mark.parametrize("budget_s", [36.0, 40.0, 46.0])
def test_later_looks_leave_the_time_for_these(budget_s: float) -> None:
    outcome = unclear(budget_s)
    assert rounds_of(outcome, BASE, FIRST_TWO, ALL_THREE) > LOOKS[0]
    assert rounds_of(outcome, BASE, FIRST_TWO) == combined(outcome).blocks == FEWEST_ROUNDS


def test_what_time_ended_early_is_decided_by_the_rounds_there_were() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0})
    outcome = tried(executor, "ab", 15.0)
    rounds = rounds_of(outcome, BASE, "a", FIRST_TWO)
    assert FEWEST_ROUNDS <= rounds < LOOKS[0]
    assert combined(outcome).findings == ["a", "b"]
    assert combined(outcome).blocks == rounds
    assert outcome.run.used_s <= 15.0


def test_where_no_three_rounds_fit_nothing_is_built() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0})
    outcome = tried(executor, "ab", 11.0)
    assert combined(outcome).dropped[0].reason == "No time left to try it together with try a."
    assert executor.count("prepare", FIRST_TWO) == 0


def test_where_building_took_the_time_nothing_is_decided() -> None:
    @dataclass
    class SlowTogether(FakeExecutor):
        def prepare(self, arm: Arm) -> Preparation:
            self.clock.now += 100.0 if arm.name == FIRST_TWO else 0.0
            return super().prepare(arm)

    executor = SlowTogether({"a": 3.0, "b": 2.0})
    outcome = tried(executor, "ab", 60.0)
    assert executor.count("prepare", FIRST_TWO) == 1
    assert executor.count("block", FIRST_TWO) == 0
    assert [(one.edit, one.reason) for one in combined(outcome).dropped] == [
        ("b", "No time left to try it together with try a.")
    ]


def test_what_fails_in_rounds_of_its_own_keeps_those_there_were() -> None:
    begun = LOOKS[0] + FEWEST_ROUNDS + 1
    executor = FakeExecutor({"a": 3.0, "b": 2.0}, refuse_block={FIRST_TWO: (begun, "Broken.")})
    found = combined(tried(executor, "ab", 120.0))
    assert (found.findings, found.blocks) == (["a", "b"], FEWEST_ROUNDS)
    assert found.speedup == pytest.approx(6.0, rel=0.05)


def test_the_time_that_the_loop_has_waited_already_is_gone() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 1.5})
    began = executor.clock.now
    findings = [make_finding("a"), make_finding("b")]
    outcome = try_edits(executor, findings, 10.0, began_s=began - 6.0)
    assert executor.clock.now - began <= 4.0 + executor.prepare_s
    assert outcome.run.used_s == pytest.approx(executor.clock.now - began + 6.0, abs=0.001)


def test_a_session_without_a_training_loop_names_none() -> None:
    executor = FakeExecutor()
    outcome = run_trials(make_session(loops=[]), [], executor, 10.0, clock=executor.clock)
    assert outcome.run.loop_id == ""
