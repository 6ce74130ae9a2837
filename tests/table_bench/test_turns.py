"""Two arms on a clock that they alone move."""

from __future__ import annotations

from pipediag.table_bench.turns import ROUNDS, Arm, rounds_of


class Played:
    """Arms that take so many seconds, in the order in which they ran."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ran: list[str] = []
        self.settled = 0

    def arm(self, name: str, takes_s: float) -> Arm:
        def run() -> str:
            self.now += takes_s
            self.ran.append(name)
            return name

        return Arm(run)

    def rounds(self, base_s: float, arm_s: float, budget_s: float) -> list[tuple[float, float]]:
        arms = self.arm("base", base_s), self.arm("way", arm_s)
        until = self.now + budget_s
        return list(rounds_of(*arms, until, self.settle, clock=lambda: self.now))

    def settle(self, _: object) -> None:
        self.settled += 1


def test_a_round_holds_a_block_of_both_in_milliseconds_a_step() -> None:
    found = Played().rounds(0.02, 0.01, 60.0)

    assert len(found) == ROUNDS
    for base_ms, ms in found:
        assert abs(base_ms - 20.0) < 1e-6
        assert abs(ms - 10.0) < 1e-6


def test_a_call_of_several_steps_counts_as_so_many() -> None:
    played = Played()
    arms = played.arm("base", 0.02), Arm(played.arm("way", 0.02).call, steps=4)
    until = played.now + 60.0

    for base_ms, ms in rounds_of(*arms, until, played.settle, clock=lambda: played.now):
        assert abs(base_ms / ms - 4.0) < 1e-6


def test_the_budget_holds_and_both_get_the_same_of_it() -> None:
    played = Played()
    played.rounds(0.02, 0.01, 60.0)

    assert played.now - 100.0 <= 60.0 + 0.02
    base_s, way_s = 0.02 * played.ran.count("base"), 0.01 * played.ran.count("way")
    assert abs(base_s - way_s) < 0.05 * base_s


def test_no_round_begins_that_would_not_be_over_in_time() -> None:
    """Six steps to warm up take 18 s, and a round of six steps 18 s more."""
    played = Played()

    assert len(played.rounds(3.0, 3.0, 60.0)) == 2
    assert played.now - 100.0 <= 60.0


def test_results_are_waited_for_once_a_block_and_once_a_step_of_the_warm_up() -> None:
    played = Played()
    found = played.rounds(0.02, 0.01, 60.0)

    assert played.settled == 6 + 2 * len(found)


def test_neither_is_always_first() -> None:
    played, firsts, begins = Played(), set(), 6
    arms = played.arm("base", 1.0), played.arm("way", 1.0)
    for _ in rounds_of(*arms, played.now + 100.0, played.settle, clock=lambda: played.now):
        firsts.add(played.ran[begins])
        begins = len(played.ran)

    assert firsts == {"base", "way"}
