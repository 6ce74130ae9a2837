"""The gate's results as a code quality report of GitLab, which its merge requests show."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from pipediag.encoding.json import dumped
from pipediag.encoding.visible import visible, visible_line, visible_start
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import most_valuable_first, place_in_checkout

LONGEST_DESCRIPTION = 2_000
"""Characters; a merge request shows one line of it."""
LONGEST_PATH = 1_000
"""Characters."""

_SEVERITIES = {"fail": "major", "warn": "minor", "inconclusive": "info"}


def render(results: Sequence[GateResult]) -> str:
    """A list of what did not pass, the most valuable first; empty where all passed.

    GitLab wants a file and a line: what has no place of its own is at the script's first line.
    """
    issues = [
        _issue(result, None, "blocker", result.script_failure)
        for result in results
        if result.script_failure is not None
    ]
    issues += [
        _issue(result, check, _SEVERITIES[check.outcome], check.sentence)
        for result, check in most_valuable_first(results)
    ]
    return dumped(_with_own_fingerprints(issues))


def _issue(result: GateResult, check: Check | None, severity: str, said: str) -> dict[str, Any]:
    file, line = place_in_checkout(result, check)
    return {
        "description": visible_line(said, LONGEST_DESCRIPTION),
        "check_name": "pipediag" if check is None else f"pipediag {visible(check.name)}",
        "severity": severity,
        "location": {"path": visible_start(file, LONGEST_PATH), "lines": {"begin": line or 1}},
    }


def _with_own_fingerprints(issues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """GitLab tells by the fingerprint which issue is new: numbers in a text must not change it."""
    seen: dict[tuple[str, str], int] = {}
    for issue in issues:
        what = (issue["check_name"], issue["location"]["path"])
        seen[what] = seen.get(what, 0) + 1
        mark = "\0".join((*what, str(seen[what])))
        issue["fingerprint"] = hashlib.sha256(mark.encode()).hexdigest()
    return issues
