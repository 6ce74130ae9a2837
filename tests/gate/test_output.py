"""The formats of the gate's results."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.result import (
    Check,
    CheckOutcome,
    GateResult,
    as_github,
    as_json,
    as_junit,
    as_markdown,
    render,
)
from tests.factories import make_session


def make_check(outcome: CheckOutcome = "fail", **overrides: Any) -> Check:
    values: dict[str, Any] = {
        "name": "missing-cache",
        "outcome": outcome,
        "severity": "error",
        "sentence": "Read again each epoch.",
        "file": "train.py",
        "line": 12,
    }
    return Check(**{**values, **overrides})


def make_result(*checks: Check, **overrides: Any) -> GateResult:
    values: dict[str, Any] = {"label": "train.py", "checks": checks, "script": "train.py"}
    return GateResult(**{**values, **overrides})


FAILED_SCRIPT = make_result(script_failure="The script ended: killed.")
MIXED = make_result(
    make_check("pass", name="verdict"),
    make_check("warn", name="small-batch", severity="warn", line=None),
    make_check("inconclusive", name="retracing", file=None, line=None),
    make_check("fail"),
)


def test_text_can_neither_break_a_row_nor_add_markup() -> None:
    check = Check(
        name="missing-cache",
        outcome="fail",
        severity="error",
        sentence="a | b\nc <img src=x> `d`",
        file="train.py",
    )
    text = as_markdown([GateResult(label="a_b.py", checks=(check,))])
    (row,) = [line for line in text.splitlines() if line.startswith("| fail")]
    assert row == (
        "| fail | missing-cache |  |  |  | train.py | a \\| b c \\<img src=x\\> \\`d\\` |"
    )
    assert "### a\\_b.py: failed" in text


@pytest.mark.parametrize(
    ("outcome", "command"),
    [("fail", "::error"), ("warn", "::warning"), ("inconclusive", "::warning")],
)
def test_the_outcome_picks_the_command(outcome: CheckOutcome, command: str) -> None:
    text = as_github([GateResult(label="train.py", checks=(make_check(outcome),))])
    assert [line for line in text.splitlines() if line.startswith("::")] == [
        f"{command} file=train.py,line=12,title=pipediag missing-cache::Read again each epoch."
    ]


def suites(*results: GateResult) -> ET.Element:
    return ET.fromstring(as_junit(results).encode())


def counts(element: ET.Element) -> tuple[str | None, ...]:
    return tuple(element.get(name) for name in ("tests", "failures", "errors", "skipped"))


def test_each_session_is_a_suite_and_each_check_a_case() -> None:
    root = suites(MIXED, make_result(make_check("pass"), label="second"))

    assert [suite.get("name") for suite in root] == ["train.py", "second"]
    assert [case.get("name") for case in root[0]] == [
        "missing-cache",
        "small-batch",
        "retracing",
        "verdict",
    ]
    assert [counts(suite) for suite in root] == [("4", "1", "1", "0"), ("1", "0", "0", "0")]
    assert counts(root) == ("5", "1", "1", None)


def test_what_ends_the_gate_with_4_is_an_error_and_what_does_not_is_skipped() -> None:
    undecided = make_check("inconclusive")
    minor = make_check("inconclusive", severity="warn")
    [ending] = suites(make_result(undecided))
    [allowed] = suites(make_result(undecided, allow_inconclusive=True))
    [below] = suites(make_result(minor))

    assert [counts(suite) for suite in (ending, allowed, below)] == [
        ("1", "0", "1", "0"),
        ("1", "0", "0", "1"),
        ("1", "0", "0", "1"),
    ]


def test_a_script_that_failed_is_an_error() -> None:
    [suite] = suites(FAILED_SCRIPT)
    [[error]] = suite

    assert counts(suite) == ("1", "0", "1", "0")
    assert (error.tag, error.get("message")) == ("error", "The script ended: killed.")


def test_json_is_one_line_for_each_script_with_its_figures() -> None:
    config = GateConfig(max_input_wait_percent=20)
    results = [evaluate(make_session(findings=[]), config), FAILED_SCRIPT]
    first, failed = map(json.loads, as_json(results).splitlines())

    assert (first["label"], first["status"], first["exit_status"]) == ("train.py", "failed", 1)
    assert (first["step_ms"], first["bottleneck"]) == (10.0, "input")
    assert first["percent_of_step"]["input_wait"] == 70.0
    [check] = first["checks"]
    assert (check["name"], check["outcome"]) == ("max-input-wait-percent", "fail")
    assert (check["value"], check["interval"], check["limit"]) == (70.0, [69.0, 71.0], 20.0)
    assert failed["script_failure"] == "The script ended: killed."


def test_the_worst_script_comes_first() -> None:
    passed = make_result(make_check("warn", severity="warn"), label="passed.py")
    failed = make_result(make_check("fail"), label="failed.py", notes=("a note",))
    said = render("markdown", [passed, FAILED_SCRIPT, failed])
    headings = [line for line in said.splitlines() if line.startswith("###")]
    assert [heading.split()[1] for heading in headings] == ["failed.py:", "train.py:", "passed.py:"]
    assert "a note" in said
