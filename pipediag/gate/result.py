"""Results of the gate, one check for each limit or rule, and the formats that they are written in:
text, annotations of GitHub Actions, Markdown, JUnit XML and JSON lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal
from xml.etree import ElementTree as ET

from pipediag.comparison.quantities import Unit
from pipediag.encoding import (
    github_command,
    json_line,
    markdown_heading,
    markdown_row,
    markdown_text,
    one_line,
    xml_document,
    xml_text,
)
from pipediag.errors import ExitStatus
from pipediag.facts.names import in_checkout

CheckOutcome = Literal["pass", "fail", "warn", "inconclusive"]
Level = Literal["warn", "error"]

OUTCOMES_WORST_FIRST: tuple[CheckOutcome, ...] = ("fail", "warn", "inconclusive", "pass")
UNIT_WORDS: dict[Unit, str] = {
    "percent": " %",
    "ratio": "x",
    "us": " us",
    "ms": " ms",
    "s": " s",
}

_STATUS_WORDS = {
    ExitStatus.GATE_FAILED: "failed",
    ExitStatus.SCRIPT_FAILED: "not judged",
    ExitStatus.INCONCLUSIVE: "inconclusive",
    ExitStatus.DONE: "passed",
}
"""Worst first: a limit that was certainly broken comes before a run that could not be judged."""


@dataclass(frozen=True)
class Check:
    """A question about a session, and the answer."""

    name: str
    """The configuration key or the rule's id."""
    outcome: CheckOutcome
    """`fail` fails the gate; `warn` is a problem at a level below `fail-on`."""
    severity: Level
    sentence: str
    value: float | None = None
    """Value in `unit`, for a limit; None for rules and for what was not measured."""
    interval: tuple[float, float] | None = None
    """95 % interval of the value."""
    limit: float | None = None
    file: str | None = None
    line: int | None = None
    unit: Unit = "percent"
    """Unit of value, interval and limit. Percent: of the step or the run; of the baseline's time
    for a slow-down."""

    @property
    def location(self) -> str:
        """`file:line` from the root of the repository, as far as known."""
        return location(self.file, self.line)


@dataclass(frozen=True)
class GateResult:
    """All checks of one script."""

    label: str
    """The script as typed, or what distinguishes this result from others."""
    checks: tuple[Check, ...]
    script: str | None = None
    """The script as typed."""
    fail_on: Level = "error"
    allow_inconclusive: bool = False
    script_failure: str | None = None
    """A sentence on how the script ended too early for anything to be judged, if it did."""
    notes: tuple[str, ...] = ()
    """Sentences that explain all checks."""
    compared: bool = False
    """True if the checks compare with a baseline."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """The main numbers of the runs, to be kept by CI: see `pipediag.gate.evaluation.figures`."""

    @property
    def status(self) -> ExitStatus:
        """The exit status that this result asks for."""
        if self.script_failure is not None:
            return ExitStatus.SCRIPT_FAILED
        if any(check.outcome == "fail" for check in self.checks):
            return ExitStatus.GATE_FAILED
        if self.undecided and not self.allow_inconclusive:
            return ExitStatus.INCONCLUSIVE
        return ExitStatus.DONE

    @property
    def status_word(self) -> str:
        """One or two words; a passed gate with undecided checks says so."""
        word = _STATUS_WORDS[self.status]
        if self.status is ExitStatus.DONE and self.undecided:
            return f"{word}, with inconclusive checks allowed"
        return word

    @property
    def undecided(self) -> tuple[Check, ...]:
        """The inconclusive checks that could fail the gate."""
        return tuple(
            check
            for check in self.checks
            if check.outcome == "inconclusive" and reaches(check.severity, self.fail_on)
        )

    @property
    def worst_checks_first(self) -> list[Check]:
        return sorted(self.checks, key=lambda check: OUTCOMES_WORST_FIRST.index(check.outcome))


def location(file: str | None, line: int | None) -> str:
    """Return `file:line` from the root of the repository, as far as known."""
    if file is None:
        return ""
    return in_checkout(file) if line is None else f"{in_checkout(file)}:{line}"


def reaches(severity: Level, fail_on: Level) -> bool:
    """Return True if a problem of this severity fails a gate with this threshold."""
    return severity == "error" or fail_on == "warn"


def past_limit(severity: Level, fail_on: Level) -> CheckOutcome:
    """Return the outcome of a check whose limit is certainly broken."""
    return "fail" if reaches(severity, fail_on) else "warn"


def worst_first(results: Iterable[GateResult]) -> list[GateResult]:
    """Return the results by status: failed, script failed, inconclusive, passed."""
    return sorted(results, key=lambda result: list(_STATUS_WORDS).index(result.status))


def worst_status(results: Iterable[GateResult]) -> ExitStatus:
    """Return the status of the worst result."""
    return worst_first(results)[0].status


def overall(results: Sequence[GateResult]) -> str:
    """Return the closing sentence over all results."""
    status = worst_status(results)
    if len(results) == 1:
        return f"Gate: {results[0].status_word} (exit status {status.value})."
    hit = sum(result.status is status for result in results)
    word = _STATUS_WORDS[status]
    return f"Gate: {word} (exit status {status.value}): {hit} of {len(results)} results."


def number(value: float, unit: Unit) -> str:
    """Format a value with the digits of its unit; times get three, as steps last µs or minutes."""
    if unit in ("ms", "s"):
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"
    return f"{value:.{2 if unit == 'ratio' else 1}f}"


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
            written += [f"  {note}" for note in result.notes]
        written.append("")
    return "".join(f"{one_line(line)}\n" for line in (*written, overall(results)))


def as_github(results: Sequence[GateResult]) -> str:
    """Return `::error` and `::warning` lines, then the text.

    Errors come first, then warnings, then what could not be decided: GitHub shows ten of a kind.
    """
    annotations = [
        github_command("error", {"title": "pipediag"}, result.script_failure)
        for result in results
        if result.script_failure is not None
    ]
    problems = [check for result in results for check in result.checks if check.outcome != "pass"]
    problems.sort(key=lambda one: OUTCOMES_WORST_FIRST.index(one.outcome))
    return "\n".join([*annotations, *map(_annotation, problems), as_text(results)])


def _annotation(check: Check) -> str:
    properties: dict[str, str] = {}
    if check.file is not None:
        properties["file"] = in_checkout(check.file)
        if check.line is not None:
            properties["line"] = str(check.line)
    properties["title"] = f"pipediag {check.name}"
    return github_command(_ANNOTATIONS[check.outcome], properties, check.sentence)


def as_markdown(results: Sequence[GateResult]) -> str:
    """Return a table for each result, the worst first, and a closing line."""
    lines = ["## pipediag", ""]
    for result in worst_first(results):
        lines += [markdown_heading(3, result.label, result.status_word), ""]
        if result.script_failure is not None:
            lines += [markdown_text(result.script_failure), ""]
            continue
        lines += [*_MARKDOWN_HEADER, *map(_markdown_row, result.worst_checks_first), ""]
        for note in result.notes:
            lines += [markdown_text(note), ""]
    return "\n".join([*lines, overall(results), ""])


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
        failed = Check("script", "inconclusive", "error", result.script_failure)
        _add_junit_case(suite, failed, result, "error")
    for check in result.worst_checks_first:
        ends_gate = check in result.undecided and not result.allow_inconclusive
        tags = {"fail": "failure", "inconclusive": "error" if ends_gate else "skipped"}
        _add_junit_case(suite, check, result, tags.get(check.outcome, "system-out"))
    for name, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    return suite


def _add_junit_case(suite: ET.Element, check: Check, result: GateResult, tag: str) -> None:
    """Add a case with one element, which has a type where it is a problem."""
    classname = xml_text(f"pipediag.{result.label}")
    case = ET.SubElement(suite, "testcase", classname=classname, name=xml_text(check.name))
    warning = "Warning: " if check.outcome == "warn" else ""
    where = f"{check.location}: " if check.location else ""
    said = xml_text(f"{warning}{where}{check.sentence}")
    element = ET.SubElement(case, tag)
    if tag != "system-out":
        element.set("message", said)
    if tag in ("failure", "error"):
        element.set("type", check.outcome)
    if tag != "skipped":
        element.text = said


def as_json(results: Sequence[GateResult]) -> str:
    """Return one line of JSON for each result: appended to a file, they are its history."""
    lines = []
    for result in results:
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
        lines.append(json_line(content))
    return "".join(lines)


_FORMATS: dict[str, Callable[[Sequence[GateResult]], str]] = {
    "github": as_github,
    "json": as_json,
    "junit": as_junit,
    "markdown": as_markdown,
    "text": as_text,
}
