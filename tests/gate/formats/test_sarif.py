from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.formats.sarif import render
from pipediag.gate.result import GateResult
from tests.factories import make_session
from tests.gate.formats.checks import FAILED_SCRIPT, MIXED, make_check, make_result
from tests.gate.formats.sarif_structure import LOG


def log(*results: GateResult) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(render(results))
    jsonschema.validate(parsed, LOG, format_checker=jsonschema.FormatChecker())
    return parsed


def run(*results: GateResult) -> dict[str, Any]:
    (only,) = log(*results)["runs"]
    return only  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "results",
    [
        [MIXED],
        [FAILED_SCRIPT],
        [MIXED, FAILED_SCRIPT, MIXED],
        [make_result()],
        [evaluate(make_session(), GateConfig(max_input_wait_percent=20))],
    ],
    ids=["all outcomes", "failed script", "several", "nothing", "a session"],
)
def test_it_is_built_as_the_standard_says(results: list[GateResult]) -> None:
    assert len(log(*results)["runs"]) == 1


def test_what_did_not_pass_is_a_result_and_the_worst_comes_first() -> None:
    results = run(MIXED)["results"]

    assert [(one["ruleId"], one["kind"], one["level"]) for one in results] == [
        ("missing-cache", "fail", "error"),
        ("small-batch", "fail", "warning"),
        ("retracing", "open", "none"),
    ]


def test_each_result_points_to_its_rule() -> None:
    only = run(make_result(make_check(), make_check(name="verdict"), make_check(line=20)))
    rules = [rule["id"] for rule in only["tool"]["driver"]["rules"]]

    assert rules == ["missing-cache", "verdict"]
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in only["results"])


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        ({}, {"artifactLocation": {"uri": "train.py"}, "region": {"startLine": 12}}),
        ({"line": None}, {"artifactLocation": {"uri": "train.py"}}),
        ({"file": None, "line": None}, {"artifactLocation": {"uri": "run.py"}}),
        ({"line": 0}, {"artifactLocation": {"uri": "train.py"}}),
    ],
)
def test_code_scanning_needs_a_place(overrides: dict[str, Any], place: dict[str, Any]) -> None:
    [result] = run(make_result(make_check(**overrides), script="run.py"))["results"]
    assert result["locations"] == [{"physicalLocation": place}]


def test_a_file_is_named_from_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [result] = run(make_result(make_check(file=str(tmp_path / "my src" / "train.py"))))["results"]
    [location] = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "my%20src/train.py"}


def test_a_script_that_failed_is_a_notification() -> None:
    only = run(FAILED_SCRIPT)
    [invocation] = only["invocations"]

    assert only["results"] == []
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    [told] = invocation["toolExecutionNotifications"]
    assert told["message"] == {"text": "The script ended: killed."}


def test_a_new_number_in_a_sentence_makes_no_new_alert() -> None:
    marks = [
        run(make_result(make_check(sentence=said)))["results"][0]["partialFingerprints"]
        for said in ("70.0 % of the step.", "71.0 % of the step.")
    ]
    assert marks[0] == marks[1]


def test_the_exit_code_is_that_of_the_contract() -> None:
    assert run(make_result(make_check()))["invocations"][0]["exitCode"] == 1
    assert run(make_result(make_check("inconclusive")))["invocations"][0]["exitCode"] == 4
