from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from pipediag.gate.formats.junit import render
from pipediag.gate.result import CheckOutcome, GateResult
from tests.gate.formats.checks import FAILED_SCRIPT, MIXED, make_check, make_result
from tests.gate.formats.junit_structure import problems


def parsed(*results: GateResult) -> ET.Element:
    root = ET.fromstring(render(results).encode())
    assert problems(root) == []
    return root


def counts(element: ET.Element) -> tuple[str | None, ...]:
    return tuple(element.get(name) for name in ("tests", "failures", "errors", "skipped"))


def test_each_session_is_a_suite_and_each_check_a_case() -> None:
    root = parsed(MIXED, make_result(make_check("pass"), label="second"))

    assert [suite.get("name") for suite in root] == ["train.py", "second"]
    assert [case.get("name") for case in root[0]] == [
        "missing-cache",
        "small-batch",
        "retracing",
        "verdict",
    ]
    assert [counts(suite) for suite in root] == [("4", "1", "1", "0"), ("1", "0", "0", "0")]
    assert counts(root) == ("5", "1", "1", None)


def test_a_failure_says_where_and_why() -> None:
    [[[failure]]] = parsed(make_result(make_check()))

    assert (failure.tag, failure.get("type")) == ("failure", "failed")
    assert failure.get("message") == failure.text == "train.py:12: Read again each epoch."


def test_what_ends_the_gate_with_4_is_an_error_and_what_does_not_is_skipped() -> None:
    undecided = make_check("inconclusive")
    minor = make_check("inconclusive", severity="warn")
    [ending] = parsed(make_result(undecided))
    [allowed] = parsed(make_result(undecided, allow_inconclusive=True))
    [below] = parsed(make_result(minor))

    assert [counts(suite) for suite in (ending, allowed, below)] == [
        ("1", "0", "1", "0"),
        ("1", "0", "0", "1"),
        ("1", "0", "0", "1"),
    ]


def test_a_warning_passes_and_is_heard() -> None:
    [[case]] = parsed(make_result(make_check("warn", severity="warn")))
    [output] = case
    assert output.tag == "system-out"
    assert output.text == "Warning: train.py:12: Read again each epoch."


def test_a_script_that_failed_is_an_error() -> None:
    [suite] = parsed(FAILED_SCRIPT)
    [[error]] = suite

    assert counts(suite) == ("1", "0", "1", "0")
    assert (error.tag, error.get("message")) == ("error", "The script ended: killed.")


def test_what_xml_cannot_hold_is_spelled_out() -> None:
    [[[failure]]] = parsed(make_result(make_check(sentence="a\x00b\ud800c\ufffed <&\"'> ##[x]")))
    assert failure.text == "train.py:12: a\\x00b\\ud800c\\ufffed <&\"'> ##[x]"


@pytest.mark.parametrize("outcome", ["pass", "warn", "fail", "inconclusive"])
@pytest.mark.parametrize("allowed", [True, False])
def test_every_outcome_is_built_as_readers_check_it(outcome: CheckOutcome, allowed: bool) -> None:
    hostile = make_check(outcome, sentence="]]> <failure/> \x00 &amp;", name='"><x y="')
    result = make_result(hostile, label="<a>", allow_inconclusive=allowed)
    assert len(list(parsed(result, FAILED_SCRIPT, make_result()).iter("testcase"))) == 2


@pytest.mark.parametrize(
    "text",
    [
        "<testsuites skipped='0'/>",
        "<testsuites><testcase name='x'/></testsuites>",
        "<testsuites><testsuite name='x' tests='1' failures='0' errors='0'/></testsuites>",
        "<testsuites><testsuite name='x' tests='0' failures='0'/></testsuites>",
        "<testsuites>said</testsuites>",
    ],
)
def test_what_is_built_otherwise_is_seen(text: str) -> None:
    assert problems(ET.fromstring(text))
