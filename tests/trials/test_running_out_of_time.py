"""An edit whose rounds cost more than was foreseen: what is said of it when the time is over."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pipediag.session.trials import Trial
from pipediag.trials.arms import Arm, Block, Preparation
from pipediag.trials.statistics import FEWEST_ROUNDS
from pipediag.vocabulary import BASE
from tests.trials.bench import FakeExecutor, make_edit, make_finding, try_edits

CAVEAT = "Measured once the cache is filled."


@dataclass
class Stalling(FakeExecutor):
    """The machine holds an arm up for `stall_s` in its block of that number, counted from 1."""

    stalled: tuple[str, int] = ("", 0)
    stall_s: float = 1000.0

    def block(self, arm: Arm, seconds: float) -> Block:
        block = super().block(arm, seconds)
        if (arm.name, self.count("block", arm.name)) == self.stalled:
            self.clock.now += self.stall_s
        return block


def tried(executor: FakeExecutor, budget_s: float = 60.0) -> Trial:
    edit = make_edit("a", caveat=CAVEAT)
    return try_edits(executor, [make_finding(edit)], budget_s).trials["a"]


def test_before_its_first_round_it_was_not_tried() -> None:
    """Building it took the time."""

    @dataclass
    class SlowToBuild(FakeExecutor):
        def prepare(self, arm: Arm) -> Preparation:
            self.clock.now += 0.0 if arm.name == BASE else 100.0
            return super().prepare(arm)

    found = tried(SlowToBuild({"a": 2.0}))
    assert (found.state, found.blocks) == ("not_tried", None)
    assert found.reason is not None
    assert found.reason.startswith("No time left: the budget of 60 s has 0 s to spare;")


@pytest.mark.parametrize(("number", "rounds"), [(1, "1 round"), (2, "2 rounds")])
def test_after_too_few_rounds_it_stays_open_and_says_how_many(number: int, rounds: str) -> None:
    found = tried(Stalling({"a": 2.0}, stalled=("a", number)))
    assert (found.state, found.speedup, found.blocks) == ("inconclusive", None, number)
    assert found.reason == f"The time for trials ended after {rounds}, too few to judge."
    assert (found.consumer, found.caveats) == ("training", [CAVEAT])


def test_after_enough_rounds_it_is_judged_by_these() -> None:
    found = tried(Stalling({"a": 2.0}, stalled=("a", FEWEST_ROUNDS)))
    assert (found.state, found.blocks, found.reason) == ("confirmed", FEWEST_ROUNDS, None)
    assert found.speedup == pytest.approx(2.0, rel=0.05)


def test_what_they_leave_open_is_said_to_lack_time() -> None:
    found = tried(Stalling({"a": 1.15}, noise=0.1, stalled=("a", 4)))
    assert (found.state, found.blocks) == ("inconclusive", 4)
    assert found.reason == "The time for trials ended after 4 rounds."


def test_of_several_the_slowest_goes_first() -> None:
    """The rest may then still be judged in the time that is left."""
    executor = Stalling({"a": 2.0, "b": 2.0, "c": 2.0}, stalled=("b", 2), stall_s=30.0)
    outcome = try_edits(executor, [make_finding(name) for name in "abc"], 60.0)
    assert {edit: trial.state for edit, trial in outcome.trials.items()} == {
        "a": "confirmed",
        "b": "inconclusive",
        "c": "confirmed",
    }
    assert outcome.trials["b"].blocks == 2


def test_a_process_that_is_lost_leaves_open_what_was_open() -> None:
    """The reason is that no further round can come."""
    executor = FakeExecutor({"a": 1.15}, noise=0.1, lose_block={BASE: 6})
    found = tried(executor)
    assert (found.state, found.blocks) == ("inconclusive", 4)
    assert found.reason == (
        "The trials ended while trying the pipeline as written: It was killed by the kernel."
    )


def test_what_it_would_take_is_the_building_and_the_rounds() -> None:
    found = tried(FakeExecutor(prepare_s=10.0, warmup_s=2.0), budget_s=25.0)
    # Of 25 s 10 went to the base's building and 2.4 to its block; the edit would need another 10
    # and three rounds of two blocks.
    assert found.reason == (
        "No time left: the budget of 25 s has 13 s to spare; to build it and 3 rounds take 24 s."
    )
