"""The gate's results as text, annotations of GitHub Actions, Markdown, JUnit XML and JSON lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any
from xml.etree import ElementTree as ET

from pipediag.encoding.markup import (
    markdown_code,
    markdown_heading,
    markdown_row,
    markdown_text,
    xml_code,
    xml_document,
    xml_text,
)
from pipediag.encoding.text import github_command, json_line, lines
from pipediag.facts.names import in_checkout
from pipediag.gate.result import (
    OUTCOMES_WORST_FIRST,
    UNIT_WORDS,
    Check,
    GateResult,
    number,
    overall,
    worst_first,
)

MAX_ANNOTATIONS = 10
"""GitHub shows ten annotations of a kind for a step and silently drops the rest."""

LONGEST_MARKDOWN = 60_000
"""Characters of the tables. A comment on GitHub holds 65,536."""

_OUTCOME_WIDTH = len("INCONCLUSIVE")
_ANNOTATIONS = {"fail": "error", "warn": "warning", "inconclusive": "warning"}
_MARKDOWN_HEADER = [
    "| Outcome | Check | Value | Interval | Limit | Where | Details |",
    "|---|---|--:|--:|--:|---|---|",
]


def render(name: str, results: Sequence[GateResult]) -> str:
    """Return the results in the format with this name, one of `pipediag.cli.common.FORMATS`."""
    return _FORMATS[name](results)


def as_text(results: Sequence[GateResult]) -> str:
    """Return every check of every result, the worst first, and a closing line."""
    written: list[str] = []
    for result in results:
        written.append(f"{result.label}: {result.status_word}")
        if result.script_failure is not None:
            written.append(f"  {result.script_failure}")
        else:
            for check in result.worst_checks_first:
                where = f" [{check.location}]" if check.file else ""
                outcome = f"  {check.outcome.upper():{_OUTCOME_WIDTH}}"
                written.append(f"{outcome}  {check.name}{where}: {check.sentence}")
                written += [" " * (_OUTCOME_WIDTH + 4) + line for line in check.diff_lines]
            written += [f"  {note}" for note in result.notes]
        written.append("")
    return lines([*written, overall(results)])


def as_github(results: Sequence[GateResult]) -> str:
    """Return at most ten `::error` or `::warning` lines, then the text.

    Errors come first, then warnings, then what could not be decided; of each, first the check whose
    advice was confirmed to gain most.
    """
    annotations = [
        github_command("error", {"title": "pipediag"}, result.script_failure)
        for result in results
        if result.script_failure is not None
    ]
    problems = [check for result in results for check in result.checks if check.outcome != "pass"]
    problems.sort(key=lambda one: (OUTCOMES_WORST_FIRST.index(one.outcome), -(one.speedup or 1.0)))
    annotations += map(_annotation, problems)
    shown = annotations[:MAX_ANNOTATIONS]
    if left_out := len(annotations) - len(shown):
        shown.append(f"{left_out} more without an annotation; all are listed below.")
    return "\n".join([*shown, as_text(results)])


def _annotation(check: Check) -> str:
    properties: dict[str, str] = {}
    if check.file is not None:
        properties["file"] = in_checkout(check.file)
        if check.line is not None:
            properties["line"] = str(check.line)
    properties["title"] = f"pipediag {check.name}"
    message = "\n".join([check.sentence, *check.diff_lines])
    return github_command(_ANNOTATIONS[check.outcome], properties, message)


def as_markdown(results: Sequence[GateResult]) -> str:
    """Return a table for each result, the worst first, and a closing line.

    It is cut where a comment can hold no more.
    """
    blocks = [block for result in worst_first(results) for block in _markdown_blocks(result)]
    written = ["## pipediag\n", *("\n".join(block) for block in blocks)]
    lengths = accumulate(len(block) + 1 for block in written)
    shown = [block for block, end in zip(written, lengths, strict=True) if end <= LONGEST_MARKDOWN]
    if len(shown) < len(written):
        shown += ["", "The rest does not fit here; `--format text` shows everything.", ""]
    return "\n".join([*shown, overall(results), ""])


def _markdown_blocks(result: GateResult) -> Iterator[list[str]]:
    """Yield the lines of what is shown as a whole or not at all."""
    heading = [markdown_heading(3, result.label, result.status_word), ""]
    if result.script_failure is not None:
        yield [*heading, markdown_text(result.script_failure), ""]
        return
    yield [*heading, *_MARKDOWN_HEADER]
    for check in result.worst_checks_first:
        yield [_markdown_row(check)]
    yield [""]
    for note in result.notes:
        yield [markdown_text(note), ""]
    for check in result.worst_checks_first:
        if found := check.diff_lines:
            yield [f"{markdown_text(check.name)}:", "", *markdown_code("diff", found), ""]


def _markdown_row(check: Check) -> str:
    unit = UNIT_WORDS[check.unit]
    low, high = (number(end, check.unit) for end in check.interval or (0.0, 0.0))
    cells = (
        check.outcome,
        check.name,
        "" if check.value is None else f"{number(check.value, check.unit)}{unit}",
        "" if check.interval is None else f"{low} to {high}{unit}",
        "" if check.limit is None else f"{check.limit:g}{unit}",
        check.location,
        check.sentence,
    )
    return markdown_row(cells)


def as_junit(results: Sequence[GateResult]) -> str:
    """Return a suite for each result and a test case for each check.

    A failed check is a failure. An inconclusive one is an error where it ends the gate with status
    4, and skipped where it does not. A warning passes and is printed as the output of its case.
    """
    root = ET.Element("testsuites", name="pipediag")
    for result in results:
        root.append(_junit_suite(result))
    # Not `skipped`: in the schema that Jenkins checks reports against, only a suite has it.
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, 0)) for suite in root)))
    return xml_document(root)


def _junit_suite(result: GateResult) -> ET.Element:
    suite = ET.Element("testsuite", name=xml_text(result.label))
    if result.script_failure is not None:
        case = _junit_case(suite, "script", result)
        _junit_problem(case, "error", "script failed", result.script_failure)
    for check in result.worst_checks_first:
        _add_junit_check(suite, check, result)
    for name, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    return suite


def _add_junit_check(suite: ET.Element, check: Check, result: GateResult) -> None:
    case = _junit_case(suite, check.name, result)
    where = check.location
    sentence = f"{where}: {check.sentence}" if where else check.sentence
    match check.outcome:
        case "fail":
            _junit_problem(case, "failure", "failed", sentence, check.diff_lines)
        case "inconclusive" if check in result.undecided and not result.allow_inconclusive:
            _junit_problem(case, "error", "inconclusive", sentence)
        case "inconclusive":
            ET.SubElement(case, "skipped", message=xml_text(sentence))
        case "warn":
            ET.SubElement(case, "system-out").text = xml_text(f"Warning: {sentence}")
        case "pass":
            ET.SubElement(case, "system-out").text = xml_text(sentence)


def _junit_case(suite: ET.Element, name: str, result: GateResult) -> ET.Element:
    classname = xml_text(f"pipediag.{result.label}")
    return ET.SubElement(suite, "testcase", classname=classname, name=xml_text(name))


def _junit_problem(
    case: ET.Element, tag: str, kind: str, sentence: str, more: Sequence[str] = ()
) -> None:
    element = ET.SubElement(case, tag, message=xml_text(sentence), type=kind)
    element.text = "\n".join([xml_text(sentence), *map(xml_code, more)])


def as_json(results: Sequence[GateResult]) -> str:
    """Return one line of JSON for each result: appended to a file, they are its history."""
    return "".join(map(_json_line, results))


def _json_line(result: GateResult) -> str:
    content = {
        "label": result.label,
        "script": result.script,
        "status": result.status_word,
        "exit_status": result.status.value,
        "script_failure": result.script_failure,
        "compared": result.compared,
        **result.figures,
        "notes": list(result.notes),
        "checks": [asdict(check) for check in result.worst_checks_first],
    }
    return json_line(_finite(content))


def _finite(value: Any) -> Any:
    """Replace infinities, which JSON does not have; sums of unchecked numbers can be infinite."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value


_FORMATS: dict[str, Callable[[Sequence[GateResult]], str]] = {
    "github": as_github,
    "json": as_json,
    "junit": as_junit,
    "markdown": as_markdown,
    "text": as_text,
}
