"""How the gate is measured: the simulated machine, the peers and the table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import pytest

import benchmarks
from benchmarks import gate_real
from benchmarks.gate import WAYS, row
from benchmarks.gate_machine import CONSUMER_MS, INPUT_MS, LOAD, NOISES, STEPS, Machine
from benchmarks.gate_page import replace_section
from benchmarks.gate_peers import PEERS, threshold
from benchmarks.gate_real import Real, compare_copies
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


def test_another_load_may_be_beside_both() -> None:
    machine = Machine("a load beside either", 1e-6, 0.0, 1)
    slow = {side: [mean_ms(machine.run(side)) for _ in range(20)] for side in ("base", "head")}
    for times in slow.values():
        assert 0 < sum(one > 1.04 * min(times) for one in times) < 20


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


def test_another_load_is_told_from_a_slow_down_of_every_step() -> None:
    """Where the fastest steps are not asked, six of these 200 fail, and four of 60 are missed."""
    same = row("ab", "a load beside head", 0.1, 0.0, 200)
    slower = row("ab", "a load beside head", 0.05, 0.2, 60)
    assert same.failures["pipediag"] <= 2
    assert slower.failures["pipediag"] >= 57


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
    return Row("ab", noise, 0.05, slowdown, 200, {"pipediag": failures, "mean": 3}, 7, 5.04)


def test_the_table_has_an_interval_and_the_goals() -> None:
    rows = [of(0.0, 2), of(0.1, 50), of(0.2, 190)]
    rows += [of(0.0, 3, "spiky"), of(0.1, 2, "spiky"), of(0.2, 189, "spiky")]
    text = markdown(rows, ("mean",))

    assert "At most 1 % false failures under 1 of 2 kinds of noise; a fifth slower" in text
    assert "found in 95 % under 1 of 2." in text
    # Clopper and Pearson's of 2 and 3 in 200.
    assert "| even | 5 % | 200 | 1 % [0.12, 3.6] | 1.5 % [0.31, 4.3] | 3.5 % | 5.0 |" in text
    assert "| even | 5 % | 200 | 25 % | 95 % | 1.5 % | 5.0 | 5.0 |" in text


def test_a_section_of_the_page_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "gate.md"
    page.write_text("before\n<!-- ab -->\nold\n<!-- end of ab -->\nafter\n", encoding="utf-8")
    for content in ("first\n", "new\n"):
        replace_section(page, "ab", content)

    assert page.read_text(encoding="utf-8") == (
        "before\n<!-- ab -->\nnew\n<!-- end of ab -->\nafter\n"
    )
    with pytest.raises(ValueError, match="has no section compare: add the lines <!-- compare -->"):
        replace_section(page, "compare", "new\n")


def test_the_page_in_the_repository_has_every_section() -> None:
    page = (Path(benchmarks.__file__).parent / "results" / "gate.md").read_text(encoding="utf-8")
    for name in (*WAYS, gate_real.SECTION):
        assert page.count(f"<!-- {name} -->\n") == page.count(f"<!-- end of {name} -->\n") == 1


@contextmanager
def no_load(_seed: int) -> Iterator[None]:
    yield


def test_real_comparisons_go_on_where_an_earlier_call_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[int] = []

    def compare_once(_directory: Path, number: int) -> Real:
        if number in made:
            raise AssertionError(f"{number} was made already")
        if number == 2 and len(made) == 2:
            made.append(-1)
            raise KeyboardInterrupt
        made.append(number)
        return Real(number, "same", 3, 60.0, {"mean + 10 %": number == 1})

    monkeypatch.setattr(gate_real, "compare_once", compare_once)
    monkeypatch.setattr(gate_real, "another_load", no_load)
    page, kept = tmp_path / "page.md", tmp_path / "kept" / "real.jsonl"
    name = gate_real.SECTION
    page.write_text(f"<!-- {name} -->\n<!-- end of {name} -->\n", encoding="utf-8")

    with pytest.raises(KeyboardInterrupt):
        compare_copies(4, kept, page)
    assert compare_copies(4, kept, page) == 0

    assert made == [0, 1, -1, 2, 3]
    text = page.read_text(encoding="utf-8")
    assert text.split("\n", 1)[1].rpartition("<!--")[0] in capsys.readouterr().out
    assert "4 calls of `pipediag ab` of two copies of `pure_map.py`: 4 same; 3.0 rounds" in text
    # Clopper and Pearson's of none and of one in four.
    assert "| 0 of 4: 0 % [0, 60] | 1 of 4: 25 % [0.63, 81] |" in text


def test_a_real_comparison_that_fails_the_same_code_is_told_by_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare_once(_directory: Path, number: int) -> Real:
        return Real(number, "regressed", 5, 60.0, {})

    monkeypatch.setattr(gate_real, "compare_once", compare_once)
    monkeypatch.setattr(gate_real, "another_load", no_load)
    assert compare_copies(1, tmp_path / "real.jsonl", None) == 1


AB = """
import json, pathlib, sys
from pipediag.session.store import dump_session
from tests.comparison.sides import run_of
output = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
for side, times in (("base", (10.0, 10.0)), ("head", (12.0, 12.0))):
    assert pathlib.Path(side, sys.argv[-1]).exists()
    for number, step_ms in enumerate(times, 1):
        run = output / side / f"run-{number}"
        run.mkdir(parents=True)
        (run / "session.json").write_text(dump_session(run_of(step_ms)), encoding="utf-8")
print(json.dumps({"outcome": "inconclusive"}))
"""


def test_a_real_comparison_is_judged_by_all_from_the_runs_that_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ab.py").write_text(AB, encoding="utf-8")
    monkeypatch.setattr(gate_real, "PIPEDIAG", (sys.executable, str(tmp_path / "ab.py")))
    monkeypatch.setenv("PYTHONPATH", str(Path(benchmarks.__file__).parents[1]))

    found = gate_real.compare_once(tmp_path, 7)

    assert (found.number, found.outcome, found.rounds) == (7, "inconclusive", 2)
    assert found.peers["mean + 10 %"]


def test_a_real_comparison_that_ends_otherwise_keeps_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_real, "PIPEDIAG", (sys.executable, "-c", "import sys; sys.exit('no')"))
    found = gate_real.compare_once(tmp_path, 1)
    assert (found.outcome.strip(), found.rounds, found.peers) == ("exit status 1: no", 0, {})
