from __future__ import annotations

import pytest

from pipediag.comparison import compare
from pipediag.errors import ExitStatus
from pipediag.gate.baseline import against_baseline
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.formats import NAMES, render
from pipediag.gate.result import GateResult
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests.comparison.sides import run_of, runs_of
from tests.factories import make_finding
from tests.records import make_operation, make_pipeline

BASE = (10.0, 10.1, 9.9)


def gate(head: list[Session], config: GateConfig | None = None) -> GateResult:
    found = compare(runs_of(*BASE), head, labels=("base", "head"))
    return against_baseline(found, config or GateConfig(), "train.py")


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


def test_step_and_run_are_a_check_each() -> None:
    names = [check.name for check in gate(runs_of(*BASE)).checks]
    assert names == ["baseline.step", "baseline.run"]


def test_undecided_can_be_allowed() -> None:
    result = gate(runs_of(10.0, 30.0, 5.0), GateConfig(allow_inconclusive=True))
    assert result.status is ExitStatus.DONE


def test_the_failure_names_the_operation_that_grew() -> None:
    slow = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=9.0)])
    fast = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=1.0)])
    found = compare(runs_of(*BASE, pipeline=fast), runs_of(13.0, 13.1, 12.9, pipeline=slow))
    step = against_baseline(found, GateConfig(), "train.py").checks[0]

    assert (step.file, step.line, step.limit) == ("train.py", 12, 5.0)
    assert step.sentence.startswith("Step: 10 to 13 ms, +30.0 % (99 % interval +")
    assert "Grew most in the input pipeline: " in step.sentence
    assert "from 1 to 9 ms per step." in step.sentence


def test_the_operation_that_grew_is_named_once_and_new_findings_are_told() -> None:
    slow = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=9.0)])
    fast = make_pipeline(ops=[make_operation(line=12, self_ms_per_step=1.0)])
    head = runs_of(13.0, 13.1, 12.9, pipeline=slow, findings=[make_finding()])
    result = against_baseline(
        compare(runs_of(*BASE, pipeline=fast), head), GateConfig(), "train.py"
    )
    said = render("text", [result])
    assert said.count("FAIL") == 2
    assert said.count("Grew most") == 1
    assert [check.line for check in result.checks] == [12, 12]
    assert "  New finding: parallel-map at train.py:12: A stateful map runs one" in said


def test_a_script_that_failed_is_told() -> None:
    script = Script(path="train.py", args=[], outcome="killed", status=-9, detail="Out of memory")
    result = gate([run_of(script=script, steps=None)])
    assert result.status is ExitStatus.SCRIPT_FAILED


@pytest.mark.parametrize("name", NAMES)
def test_every_form_shows_it(name: str) -> None:
    assert "baseline.step" in render(name, [gate(runs_of(13.0, 13.1, 12.9))])


def test_all_values_are_shown() -> None:
    step = gate(runs_of(13.0, 13.1, 12.9)).checks[0]
    assert "from 3 and 3 runs: base 10, 10.1, 9.9; head 13, 13.1, 12.9)." in step.sentence


@pytest.mark.parametrize("name", ["github", "json", "markdown", "text"])
def test_a_baseline_of_another_script_is_said(name: str) -> None:
    script = Script(path="other.py", args=[], outcome="finished", status=0)
    said = render(name, [gate(runs_of(*BASE, script=script))])
    assert "The sessions are of scripts that are called differently." in said


@pytest.mark.parametrize(
    ("own", "head", "ending"),
    [
        (90.0, (13.0, 13.1, 12.9), "Gate: failed (exit status 1)."),
        (90.0, BASE, "Gate: failed (exit status 1) by its own checks."),
        (1.0, (13.0, 13.1, 12.9), "Gate: failed (exit status 1) by the baseline."),
        (1.0, BASE, "Gate: passed (exit status 0)."),
    ],
)
def test_the_end_says_which_of_both_decided(
    own: float, head: tuple[float, ...], ending: str
) -> None:
    session = run_of(input_wait=own)
    alone = evaluate(session, GateConfig(max_input_wait_percent=20))
    assert render("text", [alone, gate(runs_of(*head))]).splitlines()[-1] == ending
