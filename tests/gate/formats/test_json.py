from __future__ import annotations

import json
import math
from typing import Any

from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.formats.json import render
from pipediag.gate.result import GateResult
from tests.factories import make_session
from tests.gate.formats.checks import FAILED_SCRIPT, make_check, make_result


def parsed(*results: GateResult) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(render(results))
    return content


def test_a_limit_with_all_that_is_known_of_it() -> None:
    content = parsed(evaluate(make_session(findings=[]), GateConfig(max_input_wait_percent=20)))

    assert (content["status"], content["exit_status"]) == ("gate-failed", 1)
    [session] = content["sessions"]
    assert (session["label"], session["status"], session["exit_status"]) == (
        "train.py",
        "failed",
        1,
    )
    [check] = session["checks"]
    assert check["interval"] == [69.0, 71.0]
    assert (check["name"], check["outcome"]) == ("max-input-wait-percent", "fail")
    assert (check["value"], check["limit"]) == (70.0, 20.0)


def test_a_script_that_failed() -> None:
    content = parsed(FAILED_SCRIPT)
    assert content["status"] == "script-failed"
    assert content["sessions"][0]["script_failure"] == "The script ended: killed."


def test_a_number_that_json_does_not_know_is_none() -> None:
    [session] = parsed(make_result(make_check(value=math.inf, interval=(math.nan, 1.0))))[
        "sessions"
    ]
    [check] = session["checks"]
    assert (check["value"], check["interval"]) == (None, [None, 1.0])
