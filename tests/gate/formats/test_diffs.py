"""The change that makes up for a check, below it in the forms that have room for it."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from pipediag.gate.formats import render
from tests.gate.formats.checks import DIFF, make_check, make_result

RESULT = make_result(make_check("fail", diff=DIFF))


def test_in_a_log_it_stands_below_its_check() -> None:
    check, *below = render("text", [RESULT]).splitlines()[1:7]
    assert "missing-cache" in check
    assert [line.strip() for line in below] == [line.strip() for line in DIFF.splitlines()]
    assert below[3] == f"{' ' * 16} data = data.map(f)"


def test_an_annotation_has_it_as_lines_of_its_message() -> None:
    annotation = render("github", [RESULT]).splitlines()[0]
    assert annotation.endswith(
        "::Read again each epoch.%0A--- a/train.py%0A+++ b/train.py%0A@@ -1 +1,2 @@%0A"
        " data = data.map(f)%0A+data = data.cache()"
    )


def test_a_comment_has_it_as_a_block_of_code() -> None:
    said = render("markdown", [RESULT])
    assert f"\nmissing-cache:\n\n```diff\n{DIFF}```\n" in said


def test_no_line_of_it_ends_the_block() -> None:
    said = render("markdown", [make_result(make_check("fail", diff="+```\n+@all\n"))])
    assert "````diff\n+```\n+@all\n````\n" in said


def test_a_comment_that_is_full_goes_without() -> None:
    checks = [make_check("fail", diff="+" + "x" * 7_000) for _ in range(40)]
    assert len(render("markdown", [make_result(*checks)])) < 61_000


def test_notes_leave_room_for_a_comment() -> None:
    said = render("markdown", [make_result(make_check(), notes=("y" * 3_000,) * 100)])
    assert 50_000 < len(said) < 61_000


def test_a_failure_in_junit_has_it_below_the_sentence() -> None:
    failure = ET.fromstring(render("junit", [RESULT])).find(".//failure")
    assert failure is not None
    assert failure.get("message") == "train.py:12: Read again each epoch."
    assert failure.text == f"train.py:12: Read again each epoch.\n{DIFF}".rstrip()


def test_programs_get_it_as_it_is() -> None:
    (check,) = json.loads(render("json", [RESULT]))["sessions"][0]["checks"]
    assert check["diff"] == DIFF


def test_of_a_long_one_the_beginning_is_shown() -> None:
    long = make_check("fail", diff="".join(f"+line {number}\n" for number in range(500)))
    said = render("text", [make_result(long)])
    assert "+line 59\n" in said
    assert "+line 60\n" not in said
    assert "`pipediag fix` prints all of it." in said


def test_a_line_of_it_gives_a_runner_no_command() -> None:
    said = render("github", [make_result(make_check("fail", diff="::error::x\r\n##[error]y\n"))])
    assert [line for line in said.splitlines() if line.lstrip().startswith("::")] == [
        said.splitlines()[0]
    ]
    assert "##[error]" not in said
