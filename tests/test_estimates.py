from __future__ import annotations

import math
import random

import pytest

from benchmarks.aa import MODELS, percent_inside, simulated
from pipediag.estimates import FEWEST_ROUNDS, MOST_ROUNDS, estimate, judge, look, student_quantile
from pipediag.session.trials import WORTHWHILE

TRIALS = 100


def ratios(noise: str, spread: float, rounds: int, seed: int, truth: float = 1.0) -> list[float]:
    draw = random.Random(seed)
    blocks = MODELS[noise](draw, spread)
    found = []
    for _ in range(rounds):
        first, second = next(blocks), next(blocks)
        base, edit = (first, second) if draw.random() < 0.5 else (second, first)
        found.append(truth * math.exp(edit - base))
    return found


def misses(noise: str, spread: float, rounds: int, alpha: float, trials: int = TRIALS) -> int:
    found = [estimate(ratios(noise, spread, rounds, seed), alpha) for seed in range(trials)]
    return sum(not one.low <= 1.0 <= one.high for one in found)


@pytest.mark.parametrize("noise", sorted(MODELS))
@pytest.mark.parametrize("rounds", [FEWEST_ROUNDS, 5, 15])
def test_the_interval_holds_the_truth_as_often_as_it_says(noise: str, rounds: int) -> None:
    # 5 % of 100 are 5; three standard deviations of that count are 6.
    assert misses(noise, 0.05, rounds, alpha=0.05) <= 11


@pytest.mark.parametrize("noise", ["even", "spiky", "sluggish"])
def test_looking_again_and_again_does_not_cost_the_level(noise: str) -> None:
    # The true speed-up is the limit itself, where stopping early does the most harm.
    missed = 0
    for seed in range(TRIALS):
        listed = ratios(noise, 0.05, MOST_ROUNDS, seed, truth=WORTHWHILE)
        decisions = (look(listed[:rounds]) for rounds in range(1, MOST_ROUNDS + 1))
        last = next(decision for decision in decisions if decision is not None)
        missed += not last.low <= WORTHWHILE <= last.high
    assert missed <= 11


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        (1.04, 1.2, "confirmed"),
        (1.03, 1.2, "inconclusive"),
        (0.9, 1.2, "inconclusive"),
        (0.9, 1.03, "inconclusive"),
        (0.9, 1.02, "refuted"),
    ],
)
def test_judgement(low: float, high: float, state: str) -> None:
    assert judge(low, high) == state


def test_the_end_of_time_is_a_look() -> None:
    assert look([2.0, 2.1], last=True) is None
    decision = look([2.0, 2.1, 1.9], last=True)
    assert (decision.state, decision.rounds) == ("confirmed", 3)


AA_TRIALS = 40


@pytest.mark.parametrize("noise", ["spiky", "sluggish"])
def test_an_edit_that_does_nothing_is_never_confirmed(noise: str) -> None:
    trials = simulated(noise, 0.03, 1.0, trials=AA_TRIALS, edits=2, budget_s=60.0)
    assert len(trials) == AA_TRIALS
    assert not any(trial.state == "confirmed" for trial in trials)
    # 5 % of 40 are 2; three standard deviations of that count are 4.
    assert percent_inside(trials, 1.0) >= 100.0 * (1.0 - 6.0 / AA_TRIALS)


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [  # W. S. Gosset's table, as in Abramowitz and Stegun, table 26.10; 1 degree is tan.
        (0.975, 1, 12.706204736),
        (0.975, 2, 4.302652730),
        (0.975, 10, 2.228138852),
        (0.995, 4, 4.604094871),
        (0.95, 30, 1.697260887),
        (0.975, 1e6, 1.959966),
        (0.5, 3, 0.0),
    ],
)
def test_quantiles_are_those_of_the_table(probability: float, freedom: float, value: float) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(value, rel=1e-6, abs=1e-12)
    assert student_quantile(1 - probability, freedom) == pytest.approx(-value, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 3), (1.0, 3), (0.9, 0)])
def test_what_is_out_of_range_is_refused(probability: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        student_quantile(probability, freedom)
