"""The gate's results as JUnit XML: a suite for each session, a test case for each check."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from pipediag.encoding.xml import code, document, text
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import diff_lines, location_in_checkout, worst_checks_first

_SCRIPT = "script"
"""The one test case of a session that was not judged."""


def render(results: Sequence[GateResult]) -> str:
    """A failed check is a failure. One that could not be decided is an error where that ends the
    gate with status 4, and skipped where it does not. A warning passes and says so as its output.
    """
    root = ET.Element("testsuites", name="pipediag")
    for result in results:
        root.append(_suite(result))
    # Not `skipped`: the schema that Jenkins checks reports against has it of a suite alone.
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, 0)) for suite in root)))
    return document(root)


def _suite(result: GateResult) -> ET.Element:
    suite = ET.Element("testsuite", name=text(result.label))
    if result.script_failure is not None:
        _said(_case(suite, _SCRIPT, result), "error", "script failed", result.script_failure)
    for check in worst_checks_first(result):
        _add(suite, check, result)
    for name, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    return suite


def _add(suite: ET.Element, check: Check, result: GateResult) -> None:
    case = _case(suite, check.name, result)
    where = location_in_checkout(check)
    said = f"{where}: {check.sentence}" if where else check.sentence
    match check.outcome:
        case "fail":
            _said(case, "failure", "failed", said, diff_lines(check))
        case "inconclusive" if check in result.undecided and not result.allow_inconclusive:
            _said(case, "error", "inconclusive", said)
        case "inconclusive":
            ET.SubElement(case, "skipped", message=text(said))
        case "warn":
            ET.SubElement(case, "system-out").text = text(f"Warning: {said}")
        case "pass":
            ET.SubElement(case, "system-out").text = text(said)


def _case(suite: ET.Element, name: str, result: GateResult) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", classname=text(f"pipediag.{result.label}"), name=text(name)
    )


def _said(case: ET.Element, tag: str, kind: str, sentence: str, more: Sequence[str] = ()) -> None:
    element = ET.SubElement(case, tag, message=text(sentence), type=kind)
    element.text = "\n".join([text(sentence), *map(code, more)])
