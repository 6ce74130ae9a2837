"""How the gate is measured: the simulated machine, the peers and the table."""

from __future__ import annotations

from statistics import fmean

import pytest

from benchmarks.gate import WAYS, row
from benchmarks.gate_machine import CONSUMER_MS, INPUT_MS, LOAD, NOISES, STEPS, Machine
from benchmarks.gate_peers import PEERS, threshold
from benchmarks.gate_table import Row, markdown
from pipediag.comparison.order import Order, order_of
from pipediag.session.model import Session
from tests.comparison.sides import run_of, runs_of


def mean_ms(session: Session) -> float:
    assert session.steps is not None
    return session.steps.mean_ms


@pytest.mark.parametrize("noise", NOISES)
def test_the_same_seed_is_the_same_machine(noise: str) -> None:
    one, other = (Machine(noise, 0.05, 0.2, 3) for _ in range(2))
    runs = [(one.run(side), other.run(side)) for side in ("base", "head", "head")]
    assert all(first == second for first, second in runs)
    assert mean_ms(Machine(noise, 0.05, 0.2, 4).run("base")) != mean_ms(runs[0][0])


def test_a_slow_down_is_in_the_input_alone() -> None:
    machine = Machine("even", 1e-6, 0.5, 1)
    base, head = machine.run("base"), machine.run("head")
    step_ms = CONSUMER_MS + INPUT_MS
    assert mean_ms(head) / mean_ms(base) == pytest.approx(1.5, rel=0.1)
    assert head.breakdown is not None
    waited = head.breakdown["input_wait"].percent / 100 * 1.5 * step_ms
    assert 1.5 * step_ms - waited == pytest.approx(CONSUMER_MS)


def test_another_load_is_beside_a_part_of_head_alone() -> None:
    machine = Machine("a load beside head", 1e-6, 0.0, 1)
    seen = []
    for side in ("base", "head") * 10:
        session = machine.run(side)
        assert session.steps is not None
        samples = session.steps.samples_ms
        stretches = [fmean(samples[at : at + STEPS]) for at in range(0, len(samples), STEPS)]
        loaded = max(stretches) / min(stretches) > (1 + LOAD) / 2
        assert not (loaded and side == "base")
        seen.append(loaded)
    assert 0 < sum(seen) < 10


def test_the_runs_have_an_order_that_compare_sees() -> None:
    machine = Machine("even", 0.05, 0.0, 1)
    found = order_of(*([machine.run(side) for _ in range(3)] for side in ("base", "head")))
    assert found == Order((0, 1, 2), (3, 4, 5))


@pytest.mark.parametrize("way", WAYS)
def test_a_row_counts_what_fails(way: str) -> None:
    same, slower = (row(way, "even", 0.02, slowdown, 5) for slowdown in (0.0, 1.0))
    assert set(same.failures) == {"pipediag", *PEERS}
    assert set(same.failures.values()) == {0}
    assert set(slower.failures.values()) == {5}


def test_a_plain_threshold_is_of_all_runs() -> None:
    base = runs_of(10.0, 10.0)
    assert not threshold(base, runs_of(10.9, 11.0))
    assert threshold(base, runs_of(10.0, 13.0))


def test_pytest_benchmark_has_one_run_of_each() -> None:
    pytest.importorskip("pytest_benchmark", reason="it is in the group gate-peers")
    fails = PEERS["pytest-benchmark"]
    assert fails([run_of(10.0)], runs_of(10.0, 11.1))
    assert not fails([run_of(10.0)], runs_of(13.0, 10.9))


def of(slowdown: float, failures: int, noise: str = "even") -> Row:
    return Row("ab", noise, 0.05, slowdown, 200, {"pipediag": failures, "mean": 3}, 7)


def test_the_table_has_an_interval_and_the_goals() -> None:
    rows = [of(0.0, 2), of(0.1, 50), of(0.2, 190)]
    rows += [of(0.0, 3, "spiky"), of(0.1, 2, "spiky"), of(0.2, 189, "spiky")]
    text = markdown(rows, ("mean",))

    assert "`ab`: at most 1 % false failures under 1 of 2 kinds of noise" in text
    assert "a fifth slower found in 95 % under 1 of 2" in text
    # Clopper and Pearson's of 2 and 3 in 200.
    assert "| even | 5 % | 1 % [0.12, 3.6] | 1.5 % [0.31, 4.3] | 3.5 % |" in text
    assert "| even | 5 % | 25 % | 95 % | 1.5 % |" in text
