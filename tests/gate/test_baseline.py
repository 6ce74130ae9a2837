"""A comparison as checks of the gate, and in words."""

from __future__ import annotations

import pytest

from pipediag.errors import ExitStatus
from pipediag.gate.baseline import compare_with_baseline, since
from pipediag.gate.config import GateConfig
from pipediag.gate.output import render
from pipediag.gate.result import GateResult
from pipediag.session.model import Session
from tests import records
from tests.comparison.sides import run_of, runs_of
from tests.factories import make_finding
from tests.records import make_operation, make_pipeline

BASE = (10.0, 10.1, 9.9)


def gate(head: list[Session], config: GateConfig | None = None) -> GateResult:
    return compare_with_baseline(runs_of(*BASE), head, config or GateConfig(), ("base", "head"))


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (BASE, ExitStatus.DONE),
        ((13.0, 13.1, 12.9), ExitStatus.GATE_FAILED),
        ((7.0, 7.1, 6.9), ExitStatus.DONE),
        ((10.0, 30.0, 5.0), ExitStatus.INCONCLUSIVE),
    ],
)
def test_only_a_slow_down_that_is_no_chance_fails(
    head: tuple[float, ...], status: ExitStatus
) -> None:
    result = gate(runs_of(*head))
    assert result.checks[0].name == "baseline.step"
    assert result.status is status


def test_the_operation_that_grew_is_named_once_and_new_findings_are_reported() -> None:
    slow = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=9.0)])
    fast = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=1.0)])
    head = runs_of(13.0, 13.1, 12.9, pipeline=slow, findings=[make_finding()])
    base = runs_of(*BASE, pipeline=fast)
    result = compare_with_baseline(base, head, GateConfig(), ("base", "head"))
    said = render("text", [result])
    assert said.count("FAIL") == 2
    assert said.count("Grew most") == 1
    assert [check.line for check in result.checks] == [12, 12]
    assert "  New finding: parallel-map at train.py:12: A stateful map runs one" in said


def test_nor_are_two_machines_or_a_run_that_failed() -> None:
    elsewhere = records.make_environment(fingerprint="another")
    assert since(run_of(20.0), run_of(10.0, environment=elsewhere)) == []
    script = run_of().script.model_copy(update={"outcome": "failed", "status": 1})
    failed = run_of(20.0, script=script, steps=None, run=None)
    assert since(failed, run_of(10.0, script=script)) == []
