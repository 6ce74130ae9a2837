"""The gate's results as annotations of GitHub Actions, with the text after them."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.encoding.github import command
from pipediag.facts.names import in_checkout
from pipediag.gate.formats import text
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import diff_lines, most_valuable_first

MAX_ANNOTATIONS = 10
"""GitHub shows ten annotations of a kind for a step and drops the rest without a word."""

_COMMANDS = {"fail": "error", "warn": "warning", "inconclusive": "warning"}


def render(results: Sequence[GateResult]) -> str:
    """At most ten `::error` or `::warning` lines, the most valuable first, then the text form.

    Errors come first, then warnings, then what could not be decided; of each, first the one whose
    advice was confirmed to buy most.
    """
    annotations = [
        command("error", {"title": "pipediag"}, result.script_failure)
        for result in results
        if result.script_failure is not None
    ]
    annotations += [_annotation(check) for _, check in most_valuable_first(results)]
    lines = annotations[:MAX_ANNOTATIONS]
    left_out = len(annotations) - len(lines)
    if left_out:
        lines.append(f"{left_out} more without an annotation; all are listed below.")
    return "\n".join([*lines, text.render(results)])


def _annotation(check: Check) -> str:
    properties: dict[str, str] = {}
    if check.file is not None:
        properties["file"] = in_checkout(check.file)
        if check.line is not None:
            properties["line"] = str(check.line)
    properties["title"] = f"pipediag {check.name}"
    message = "\n".join([check.sentence, *diff_lines(check)])
    return command(_COMMANDS[check.outcome], properties, message)
