"""The gate's results as annotations of GitHub Actions, with the text after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipediag.encoding.github import command
from pipediag.gate.formats import text
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import worst_checks_first

MAX_ANNOTATIONS = 10
"""GitHub shows ten annotations of a kind for a step and drops the rest without a word."""

_COMMANDS = {"fail": "error", "warn": "warning", "inconclusive": "warning"}


def render(results: Sequence[GateResult]) -> str:
    """At most ten `::error` or `::warning` lines, errors first, then the text form."""
    annotations = sorted(_annotations(results), key=lambda line: not line.startswith("::error"))
    lines = annotations[:MAX_ANNOTATIONS]
    left_out = len(annotations) - len(lines)
    if left_out:
        lines.append(f"{left_out} more without an annotation; all are listed below.")
    return "\n".join([*lines, text.render(results)])


def _annotations(results: Sequence[GateResult]) -> Iterator[str]:
    for result in results:
        if result.script_failure is not None:
            yield command("error", {"title": "pipediag"}, result.script_failure)
        for check in worst_checks_first(result):
            if check.outcome != "pass":
                yield _annotation(check)


def _annotation(check: Check) -> str:
    properties: dict[str, str] = {}
    if check.file is not None:
        properties["file"] = _in_checkout(check.file)
        if check.line is not None:
            properties["line"] = str(check.line)
    properties["title"] = f"pipediag {check.name}"
    return command(_COMMANDS[check.outcome], properties, check.sentence)


def _in_checkout(file: str) -> str:
    """GitHub finds a file by its path from the checkout's root, where a workflow step runs."""
    path = Path(file)
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else file
