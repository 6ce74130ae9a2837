from __future__ import annotations

import copy
from typing import Any

import pytest

from pipediag.session.store import MINOR
from pipediag.session.upgrades import UPGRADES, upgrade


def test_steps_are_in_order_and_lead_no_further_than_the_present_version() -> None:
    minors = [step.to for step in UPGRADES]

    assert minors == sorted(set(minors))
    assert minors[-1] <= MINOR


def test_a_step_is_taken_only_by_what_is_older() -> None:
    content = {"findings": [{"rule": "small-shuffle"}]}

    upgrade(content, 1)
    assert "subject" not in content["findings"][0]

    upgrade(content, 0)
    assert content["findings"][0]["subject"] == "quality"


def test_the_time_of_another_loop_is_missing_with_a_reason() -> None:
    content = {"steps": {"mean_ms": 2.0}, "loops": [{"diagnosed": False, "time": {"steps_s": 1.0}}]}

    upgrade(content, 0)

    assert content["loops"][0]["time"] is None
    assert "mean step" in content["loops"][0]["time_missing"]


def test_what_was_there_stays() -> None:
    content: dict[str, Any] = {
        "findings": [
            {
                "rule": "small-shuffle",
                "subject": "speed",
                "trial": {"speedup": 2.0, "consumer": "pipeline alone", "basis": "step"},
            }
        ],
        "loops": [{"diagnosed": True, "time": {"step_ms": 3.0}}],
        "steps": {"mean_ms": 2.0},
    }
    before = copy.deepcopy(content)

    upgrade(content, 0)

    assert content == before


@pytest.mark.parametrize("odd", [None, 3, "x", [], {}, [None, 3, "x", []]])
def test_what_a_stranger_wrote_is_left_to_validation(odd: Any) -> None:
    keys = ("findings", "trials", "combined", "loops", "steps")
    for content in (
        dict.fromkeys(keys, odd),
        {"findings": [{"trial": odd, "rule": odd}], "loops": [{"diagnosed": True, "time": odd}]},
        {"trials": {"consumer": odd}, "combined": {"speedup": odd}, "loops": [{"time": {}}]},
    ):
        upgrade(content, 0)
