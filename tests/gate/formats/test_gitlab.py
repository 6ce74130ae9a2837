from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pipediag.gate.formats.gitlab import render
from pipediag.gate.result import GateResult
from tests.gate.formats.checks import FAILED_SCRIPT, MIXED, make_check, make_result

# What GitLab's documentation of its code quality report asks for.
REPORT = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./)."},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "additionalProperties": False,
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}


def issues(*results: GateResult) -> list[dict[str, Any]]:
    parsed: list[dict[str, Any]] = json.loads(render(results))
    jsonschema.validate(parsed, REPORT)
    return parsed


def test_what_did_not_pass_is_an_issue() -> None:
    assert [(one["check_name"], one["severity"]) for one in issues(MIXED)] == [
        ("pipediag missing-cache", "major"),
        ("pipediag small-batch", "minor"),
        ("pipediag retracing", "info"),
    ]


def test_nothing_is_an_empty_list() -> None:
    assert issues(make_result(make_check("pass"))) == []


def test_what_has_no_place_is_at_the_script() -> None:
    [issue] = issues(make_result(make_check(file=None, line=None), script="run.py"))
    assert issue["location"] == {"path": "run.py", "lines": {"begin": 1}}


def test_a_script_that_failed_blocks() -> None:
    [issue] = issues(FAILED_SCRIPT)
    assert (issue["severity"], issue["description"]) == ("blocker", "The script ended: killed.")


def test_a_number_in_a_text_makes_no_new_issue_and_two_of_a_rule_are_two() -> None:
    before = issues(make_result(make_check(sentence="70 %."), make_check(line=20)))
    after = issues(make_result(make_check(sentence="71 %."), make_check(line=21)))

    assert [one["fingerprint"] for one in before] == [one["fingerprint"] for one in after]
    assert len({one["fingerprint"] for one in before}) == 2


def test_a_path_is_that_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [issue] = issues(make_result(make_check(file=str(tmp_path / "src" / "train.py"))))
    assert issue["location"]["path"] == "src/train.py"
