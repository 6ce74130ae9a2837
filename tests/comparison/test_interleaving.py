"""Runs of two versions by turns: order, limits, and that looking often raises no false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest

from pipediag.comparison import compare
from pipediag.comparison.interleaving import Ended, Interleaved, Limits, Side, interleave
from pipediag.comparison.looks import share_of_look
from pipediag.comparison.result import Comparison, Outcome, Quantity
from pipediag.comparison.statistics import FALSE_ALARMS, TIMES, Samples, change_of_times, judge
from pipediag.session.model import Session
from tests.comparison.sides import run_of

LIMITS = Limits(rounds=10, seconds=3600.0)
HOUR = 3600.0
DRAWS = 2_000


class Clock:
    """Stands still but for what the runs take."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def of_times(base: Sequence[float], head: Sequence[float], share: float) -> Comparison:
    """Of two quantities that are judged together, as step and run are, here of one time each."""
    if min(len(base), len(head)) < 3:
        return Comparison("base", "head", quantities=())
    sides = Samples(tuple(base), "runs"), Samples(tuple(head), "runs")
    change = change_of_times(*sides, share / 2)
    outcome = judge(change, TIMES["runs"])
    return Comparison("base", "head", (Quantity("step", "Step", "ms", (), (), outcome, change),))


def taking(
    times: Callable[[Side], float], clock: Clock, takes: float = 10.0
) -> tuple[Callable[[Side, int, float], float], list[tuple[Side, int]]]:
    made: list[tuple[Side, int]] = []

    def run(side: Side, number: int, _left: float) -> float:
        made.append((side, number))
        clock.now += takes
        return times(side)

    return run, made


def noisy(
    seed: int, slowdown: float, spread: float, interruptions: float = 0.0
) -> Callable[[Side], float]:
    """Times that differ log-normally; of so large a share a neighbour makes half as much again."""
    random = np.random.default_rng(seed)
    scale = {"base": 10.0, "head": 10.0 * (1.0 + slowdown)}

    def time(side: Side) -> float:
        disturbed = 1.5 if random.random() < interruptions else 1.0
        return float(disturbed * scale[side] * np.exp(random.normal(0.0, spread)))

    return time


def undecided(side: Side, seen: Counter[Side]) -> float:
    """As noisy as never to be decided."""
    seen[side] += 1
    return 10.0 if seen[side] % 2 else 30.0


@pytest.mark.parametrize(
    ("head", "outcome", "rounds"),
    [(13.0, "regressed", 5), (7.0, "improved", 5), (10.0, "same", 3)],
)
def test_a_clear_case_ends_early_and_a_difference_after_five_rounds(
    head: float, outcome: str, rounds: int
) -> None:
    clock = Clock()
    run, made = taking(lambda side: {"base": 10.0, "head": head}[side], clock)
    found = interleave(run, of_times, LIMITS, Random(1), clock)

    assert (found.end, found.rounds, len(made)) == ("decided", rounds, 2 * rounds)
    assert found.comparison is not None
    assert found.comparison.outcome == outcome


def said(*outcomes: Outcome) -> Callable[[Sequence[float], Sequence[float], float], Comparison]:
    """In place of what judges: what it says after three rounds, after four and so on."""

    def judge(base: Sequence[float], head: Sequence[float], _share: float) -> Comparison:
        rounds = min(len(base), len(head))
        outcome = outcomes[rounds - 3] if rounds >= 3 else "inconclusive"
        step = Quantity("step", "Step", "ms", (), (), outcome)
        return Comparison("base", "head", (step,))

    return judge


OPEN: Outcome = "inconclusive"
SLOWER: Outcome = "regressed"
FASTER: Outcome = "improved"


@pytest.mark.parametrize(
    ("outcomes", "end", "rounds"),
    [
        # A load that happened to be beside all of head's first runs is gone in the next one.
        ((SLOWER, OPEN, OPEN, OPEN, OPEN, OPEN), "rounds", 8),
        ((SLOWER, SLOWER, OPEN, OPEN, OPEN, OPEN), "rounds", 8),
        ((OPEN, SLOWER, SLOWER), "decided", 5),
        ((OPEN, OPEN, SLOWER, SLOWER), "decided", 6),
        ((OPEN, OPEN, SLOWER, OPEN, SLOWER, SLOWER), "decided", 8),
        ((OPEN, FASTER, SLOWER, SLOWER), "decided", 6),
        ((SLOWER, "same"), "decided", 4),
        # What the last round leaves is judged as it stands.
        ((OPEN, OPEN, OPEN, OPEN, OPEN, SLOWER), "decided", 8),
    ],
)
def test_a_difference_takes_two_looks_in_a_row(
    outcomes: tuple[Outcome, ...], end: str, rounds: int
) -> None:
    run, _ = taking(lambda _side: 10.0, Clock())
    found = interleave(run, said(*outcomes), Limits(8, HOUR), Random(1), Clock())
    assert (found.end, found.rounds) == (end, rounds)
    assert found.comparison is not None
    assert found.comparison.outcome == outcomes[rounds - 3]


def test_each_round_is_judged_by_its_own_look_and_what_is_left_by_the_last_one() -> None:
    looks: list[tuple[int, float]] = []

    def judge(base: Sequence[float], head: Sequence[float], share: float) -> Comparison:
        looks.append((min(len(base), len(head)), share))
        return said(*(OPEN,) * 8)(base, head, share)

    run, _ = taking(lambda _side: 10.0, clock := Clock())
    interleave(run, judge, Limits(10, 119.0), Random(1), clock)
    assert looks == [(rounds, share_of_look(rounds, 10)) for rounds in (3, 4, 5, 5)]


@pytest.mark.parametrize("rounds", [3, 4])
def test_who_allows_fewer_rounds_gets_what_they_say(rounds: int) -> None:
    run, made = taking(lambda side: {"base": 10.0, "head": 13.0}[side], Clock())
    limits = Limits(rounds, HOUR)
    found = interleave(run, of_times, limits, Random(1), Clock())
    assert (found.end, len(made)) == ("decided", 2 * rounds)


def test_a_load_beside_every_other_run_of_head_seldom_makes_it_slower() -> None:
    """It is beside all of head's first five runs in one of 32 comparisons, of its first three in
    one of eight."""
    found = Counter[Outcome]()
    for draw in range(400):
        random = np.random.default_rng(draw)

        def time(side: Side, random: np.random.Generator = random) -> float:
            beside = side == "head" and random.random() < 0.5
            return float(10.0 * (1.5 if beside else 1.0) * np.exp(random.normal(0.0, 0.02)))

        run, _ = taking(time, Clock())
        ended = interleave(run, of_times, LIMITS, Random(draw), Clock())
        assert ended.comparison is not None
        found[ended.comparison.outcome] += 1
    assert found["regressed"] <= 400 / 32


def test_two_rounds_are_a_mirror_and_the_coin_says_which_way() -> None:
    orders: set[tuple[Side, ...]] = set()
    for seed in range(20):
        clock, seen = Clock(), Counter[Side]()
        run, made = taking(lambda side, seen=seen: undecided(side, seen), clock)  # type: ignore[misc]
        found = interleave(run, of_times, Limits(7, HOUR), Random(seed), clock)
        assert (found.end, found.rounds) == ("rounds", 7)
        assert [number for _, number in made] == [at // 2 + 1 for at in range(14)]
        sides = [side for side, _ in made]
        for at in range(0, 12, 4):
            assert sides[at : at + 2] == sides[at + 3 : at + 1 : -1]
            orders.add(tuple(sides[at : at + 4]))
    assert orders == {("base", "head", "head", "base"), ("head", "base", "base", "head")}


def test_the_same_seed_gives_the_same_order() -> None:
    def order(seed: int) -> list[tuple[Side, int]]:
        clock = Clock()
        run, made = taking(lambda _side: 10.0, clock)
        interleave(
            run, lambda _base, _head, share: of_times([], [], share), LIMITS, Random(seed), clock
        )
        return made

    assert order(3) == order(3)


def test_no_round_is_begun_that_would_end_after_the_limit() -> None:
    clock, seen = Clock(), Counter[Side]()
    run, _ = taking(lambda side: undecided(side, seen), clock, takes=10.0)
    found = interleave(run, of_times, Limits(100, 119.0), Random(1), clock)
    assert (found.end, found.rounds, clock.now) == ("seconds", 5, 100.0)


def test_each_run_is_told_how_long_there_is() -> None:
    clock = Clock()
    told: list[float] = []

    def run(_side: Side, _number: int, left: float) -> float:
        told.append(left)
        clock.now += 30.0
        if len(told) == 2:
            raise Ended("seconds")
        return 10.0

    found = interleave(run, of_times, Limits(10, 50.0), Random(1), clock)
    assert told == [50.0, 20.0]
    assert (found.end, found.rounds, found.comparison) == ("seconds", 0, None)


def test_a_first_run_that_takes_all_the_time_leaves_none_for_the_other() -> None:
    clock = Clock()
    run, made = taking(lambda _side: 10.0, clock, takes=60.0)
    found = interleave(run, of_times, Limits(10, 50.0), Random(1), clock)
    assert (found.end, len(made)) == ("seconds", 1)


def test_an_interruption_leaves_what_was_measured() -> None:
    seen: Counter[Side] = Counter()

    def run(side: Side, number: int, _left: float) -> float:
        if number == 5:
            raise Ended("interrupted")
        return undecided(side, seen)

    found = interleave(run, of_times, LIMITS, Random(1), Clock())
    assert (found.end, found.rounds, len(found.base), len(found.head)) == ("interrupted", 4, 4, 4)
    assert found.comparison is not None
    assert found.comparison.outcome == "inconclusive"


def sessions(
    step_ms: Callable[[Side], float], **overrides: object
) -> Callable[[Side, int, float], Session]:
    return lambda side, _number, _left: run_of(step_ms(side), **overrides)


def real(base: Sequence[Session], head: Sequence[Session], share: float) -> Comparison:
    return compare(base, head, error_share=share)


def test_what_is_never_measured_is_given_up_at_the_first_look() -> None:
    run = sessions(lambda _side: 10.0, steps=None, steps_missing="No loop was seen.")
    found: Interleaved[Session] = interleave(run, real, LIMITS, Random(1))
    assert (found.end, found.rounds) == ("undecidable", 3)


def test_the_interval_is_that_of_the_look() -> None:
    run = sessions(lambda side: {"base": 10.0, "head": 13.0}[side])
    found: Interleaved[Session] = interleave(run, real, LIMITS, Random(1))
    assert found.comparison is not None
    change = found.comparison.quantities[0].change
    assert change is not None
    # One percent for each end, an eighth of it for the look after five of ten rounds, of two
    # quantities.
    assert change.level == pytest.approx(100.0 * (1.0 - 2.0 * 0.01 / 8 / 2))


def simulated(
    slowdown: float,
    spread: float,
    draws: int,
    limits: Limits = LIMITS,
    interruptions: float = 0.0,
) -> tuple[Counter[Outcome], float]:
    """Outcomes, and rounds on average."""
    outcomes: Counter[Outcome] = Counter()
    rounds = 0
    for draw in range(draws):
        clock = Clock()
        run, _ = taking(noisy(draw, slowdown, spread, interruptions), clock, takes=0.0)
        found = interleave(run, of_times, limits, Random(draw), clock)
        assert found.comparison is not None
        outcomes[found.comparison.outcome] += 1
        rounds += found.rounds
    return outcomes, rounds / draws


@pytest.mark.parametrize("spread", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("interruptions", [0.0, 0.1])
def test_the_same_code_is_hardly_ever_called_slower_however_often_one_looks(
    spread: float, interruptions: float
) -> None:
    found, _ = simulated(0.0, spread, draws=DRAWS, interruptions=interruptions)
    # Of one quantity half of what both together are allowed.
    assert found["regressed"] <= DRAWS * FALSE_ALARMS / 2


def test_who_stops_at_the_first_look_that_says_so_at_one_percent_is_wrong_more_often() -> None:
    """What the method is for: the same looks, each at the level of a single one."""
    wrong = Counter[bool]()
    for draw in range(DRAWS):
        times, sides = noisy(draw, 0.0, 0.3), {"base": [0.0] * 0, "head": [0.0] * 0}
        for _ in range(LIMITS.rounds):
            for side, values in sides.items():
                values.append(times("base" if side == "base" else "head"))
            seen = of_times(sides["base"], sides["head"], 1.0).outcome
            if seen == "regressed":
                break
        wrong[seen == "regressed"] += 1
    assert wrong[True] > DRAWS * FALSE_ALARMS / 2


@pytest.mark.parametrize(("spread", "most_rounds"), [(0.02, 6.0), (0.05, 7.0)])
def test_a_fifth_more_time_is_found(spread: float, most_rounds: float) -> None:
    found, rounds = simulated(0.2, spread, draws=200)
    assert found["regressed"] >= 0.95 * 200
    assert rounds <= most_rounds


def test_whole_sessions_of_the_same_code_are_called_so_within_a_few_rounds() -> None:
    outcomes: Counter[Outcome] = Counter()
    for draw in range(40):
        run = sessions(noisy(draw, 0.0, 0.02))
        found: Interleaved[Session] = interleave(run, real, LIMITS, Random(draw))
        assert found.comparison is not None
        outcomes[found.comparison.outcome] += 1
    assert outcomes["regressed"] == 0
    assert outcomes["same"] >= 38
