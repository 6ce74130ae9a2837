"""Comparisons of sessions: what is judged, what explains it, and what the gate makes of it."""

from __future__ import annotations

import pytest

from pipediag.errors import ExitStatus
from pipediag.gate.baseline import compare_with_baseline
from pipediag.gate.config import GateConfig
from pipediag.gate.result import render
from tests.comparison.sides import compare, outcome_of, run_of, runs_of, status_of
from tests.factories import make_finding, make_run
from tests.records import make_operation, make_pipeline, make_steps

BASE = (10.0, 10.1, 9.9)
SLOWER = (13.0, 13.1, 12.9)


@pytest.mark.parametrize(
    ("base", "head", "outcome", "status"),
    [
        (BASE, BASE[::-1], "same", ExitStatus.DONE),
        (BASE, SLOWER, "regressed", ExitStatus.GATE_FAILED),
        (SLOWER, BASE, "improved", ExitStatus.DONE),
        (BASE, (10.0, 30.0, 5.0), "inconclusive", ExitStatus.INCONCLUSIVE),
    ],
)
def test_only_a_slow_down_that_is_no_chance_fails(
    base: tuple[float, ...], head: tuple[float, ...], outcome: str, status: ExitStatus
) -> None:
    both = runs_of(*base), runs_of(*head)
    assert (outcome_of(compare(*both)), status_of(*both)) == (outcome, status)


@pytest.mark.parametrize(
    ("head_ms", "outcome"), [(12.0, "same"), (13.0, "regressed"), (7.0, "improved")]
)
def test_between_single_runs_only_a_large_change_counts(head_ms: float, outcome: str) -> None:
    found = compare([run_of(10.0)], [run_of(head_ms)])
    step = found["step"]

    assert (step.outcome, step.floor) == (outcome, 25.0)
    assert (step.change.basis, step.change.samples) == ("blocks", (10, 10))
    assert found["run"].outcome == "not judged"


def test_what_was_not_measured_is_inconclusive_with_its_reason() -> None:
    found = compare([run_of()], [run_of(steps=None, steps_missing="Only 4 steps were seen.")])
    step = found["step"]

    assert (step.outcome, step.missing) == (
        "inconclusive",
        "Not known for head: Only 4 steps were seen.",
    )


def test_batches_that_differ_in_size_are_compared_by_the_example() -> None:
    steps = make_steps(mean_ms=20.0, batch_size=64, samples_ms=[20.0, 20.1] * 20)
    found = compare([run_of(10.0)], [run_of(steps=steps)])["step"]

    assert (found.unit, found.base, found.head) == ("us", (312.5,), (312.5,))
    assert found.outcome == "same"


def test_ledgers_of_another_scope_are_not_held_together() -> None:
    found = compare(
        runs_of(*BASE), runs_of(*BASE, run=make_run(scope="epoch", projected_total_s=9.0))
    )
    run = found["run"]
    assert (run.outcome, run.missing) == (
        "inconclusive",
        "The ledgers cover different spans: epoch and run.",
    )


def test_the_operation_that_grew_most_is_named_once_and_new_findings_are_reported() -> None:
    less, more = (make_operation("batch", "batch", line=13, self_ms_per_step=ms) for ms in (1, 2))
    slow = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=9.0), more])
    fast = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=1.0), less])
    head = runs_of(13.0, 13.1, 12.9, pipeline=slow, findings=[make_finding()])
    base = runs_of(*BASE, pipeline=fast)
    result = compare_with_baseline(base, head, GateConfig(), ("base", "head"))
    said = render("text", [result])
    assert result.checks[0].name == "baseline.step"
    assert said.count("FAIL") == 2
    assert said.count("Grew most") == 1
    assert [check.line for check in result.checks] == [12, 12]
    assert "  New finding: parallel-map at train.py:12: A stateful map runs one" in said
