"""The gate's results as a SARIF 2.1.0 log, for code scanning."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipediag import __version__
from pipediag.encoding.json import dumped
from pipediag.encoding.sarif import message, uri
from pipediag.gate.result import Check, GateResult, worst_status
from pipediag.gate.wording import most_valuable_first, place_in_checkout

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_KINDS = {
    "fail": ("fail", "error"),
    "warn": ("fail", "warning"),
    # `open`: there was too little to decide by (3.27.9); a kind other than `fail` has no level.
    "inconclusive": ("open", "none"),
}


def render(results: Sequence[GateResult]) -> str:
    """One run, whose results are what did not pass, the most valuable first."""
    told = most_valuable_first(results)
    names = dict.fromkeys(check.name for _, check in told)
    ids = {name: at for at, name in enumerate(names)}
    run = {
        "tool": {"driver": _driver(ids)},
        "invocations": [_invocation(results)],
        "results": [_result(result, check, ids) for result, check in told],
        "columnKind": "unicodeCodePoints",
    }
    return dumped({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _driver(ids: Iterable[str]) -> dict[str, Any]:
    return {
        "name": "pipediag",
        "version": __version__,
        "rules": [{"id": message(name)} for name in ids],
    }


def _invocation(results: Sequence[GateResult]) -> dict[str, Any]:
    """Of the gate; a script that failed is told as a notification, as nothing of it was judged."""
    failures = [result for result in results if result.script_failure is not None]
    invocation: dict[str, Any] = {
        "executionSuccessful": not failures,
        "exitCode": worst_status(results).value,
    }
    if failures:
        invocation["toolExecutionNotifications"] = [
            {
                "level": "error",
                "message": {"text": message(result.script_failure or "")},
                "locations": [_location(*place_in_checkout(result))],
            }
            for result in failures
        ]
    return invocation


def _result(result: GateResult, check: Check, ids: Mapping[str, int]) -> dict[str, Any]:
    kind, level = _KINDS[check.outcome]
    file, line = place_in_checkout(result, check)
    mark = f"{check.name}\0{file}".encode(errors="backslashreplace")
    return {
        "ruleId": message(check.name),
        "ruleIndex": ids[check.name],
        "kind": kind,
        "level": level,
        "message": {"text": message(check.sentence)},
        "locations": [_location(file, line)],
        "partialFingerprints": {"checkAndFile/v1": hashlib.sha256(mark).hexdigest()},
    }


def _location(file: str, line: int | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri(file)}}
    if line is not None:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}
