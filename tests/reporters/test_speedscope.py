"""Against the types that speedscope's own file-format-spec.ts gives, written here as a schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from pipediag.reporters import speedscope
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from tests import factories
from tests.records import SCRIPT
from tests.reporters import sessions

NUMBER = {"type": "number"}
SCHEMA = {
    "type": "object",
    "required": ["$schema", "version", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "version": {"type": "string"},
        "name": {"type": "string"},
        "activeProfileIndex": NUMBER,
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "file": {"type": "string"},
                            "line": NUMBER,
                            "col": NUMBER,
                        },
                        "additionalProperties": False,
                    },
                }
            },
        },
        "profiles": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": [
                    "type", "name", "unit", "startValue", "endValue", "samples", "weights"
                ],
                "properties": {
                    "type": {"const": "sampled"},
                    "name": {"type": "string"},
                    "unit": {
                        "enum": [
                            "none", "nanoseconds", "microseconds", "milliseconds", "seconds",
                            "bytes",
                        ]
                    },
                    "startValue": NUMBER,
                    "endValue": NUMBER,
                    "samples": {"type": "array", "items": {"type": "array", "items": NUMBER}},
                    "weights": {"type": "array", "items": NUMBER},
                },
                "additionalProperties": False,
            },
        },
    },
}  # fmt: skip


def written(session: Session) -> Any:
    [(name, text)] = speedscope.files(session)
    assert name == "python.speedscope.json"
    return json.loads(text)


@pytest.mark.parametrize(
    "make", [factories.make_session, sessions.nothing_measured, sessions.hostile]
)
def test_it_is_of_the_published_form(make: Any) -> None:
    content = written(make())

    jsonschema.validate(content, SCHEMA)
    frames = content["shared"]["frames"]
    for profile in content["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] >= profile["startValue"]
        assert all(0 <= at < len(frames) for stack in profile["samples"] for at in stack)


def test_each_kind_of_thread_is_a_profile_of_functions_and_lines() -> None:
    lines = [
        HotLine(file=SCRIPT, line=7, function="parse", percent=60.0, thread="source"),
        HotLine(file=SCRIPT, line=8, function="parse", percent=20.0, thread="source"),
        HotLine(file=SCRIPT, line=20, function="<module>", percent=90.0, thread="main"),
    ]
    session = factories.make_session(host=factories.make_host(hot_python=lines))

    content = written(session)

    source, main = content["profiles"]
    frames = content["shared"]["frames"]
    assert (source["weights"], source["endValue"]) == ([60.0, 20.0], 80.0)
    stacks = [[frames[at]["name"] for at in stack] for stack in source["samples"]]
    assert [stack[0] for stack in stacks] == ["parse", "parse"]
    assert [stack[1].rpartition(":")[2] for stack in stacks] == ["7", "8"]
    assert source["samples"][0][0] == source["samples"][1][0]
    assert "training loop" in main["name"]
