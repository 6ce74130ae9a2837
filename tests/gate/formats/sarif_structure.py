"""The parts of SARIF 2.1.0 that pipediag writes, and nothing else, as a JSON schema.

The numbers are the sections of the standard. What it allows beside is left out on purpose: a
property that nobody has checked is not written by accident.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string", "minLength": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}


def only(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these properties."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def several(item: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": least}


MESSAGE = only({"text": TEXT})  # 3.11
LOCATION = only(  # 3.28 to 3.30
    {
        "physicalLocation": only(
            {"artifactLocation": only({"uri": {**TEXT, "format": "uri-reference"}})},
            {"region": only({"startLine": {"type": "integer", "minimum": 1}})},
        )
    }
)
RESULT = only(  # 3.27
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["pass", "open", "informational", "notApplicable", "review", "fail"]},
        "level": LEVEL,
        "message": MESSAGE,
        "locations": several(LOCATION, 1),
        "partialFingerprints": {"type": "object", "additionalProperties": TEXT},
    }
)
RESULT["if"] = {"properties": {"kind": {"not": {"const": "fail"}}}}
RESULT["then"] = {"properties": {"level": {"const": "none"}}}  # 3.27.10
NOTIFICATION = only(  # 3.58
    {"level": LEVEL, "message": MESSAGE, "locations": several(LOCATION, 1)}
)
RUN = only(  # 3.14
    {
        "tool": only(  # 3.18, 3.19
            {"driver": only({"name": TEXT, "version": TEXT, "rules": several(only({"id": TEXT}))})}
        ),
        "invocations": several(  # 3.20
            only(
                {"executionSuccessful": {"type": "boolean"}, "exitCode": {"type": "integer"}},
                {"toolExecutionNotifications": several(NOTIFICATION, 1)},
            ),
            1,
        ),
        "results": several(RESULT),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    }
)
LOG = only(  # 3.13
    {
        "$schema": {"type": "string", "pattern": "^https://.*/sarif-schema-2\\.1\\.0\\.json$"},
        "version": {"const": "2.1.0"},
        "runs": several(RUN, 1),
    }
)
