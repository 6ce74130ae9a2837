from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata
from typing import Any
from xml.etree import ElementTree as ET

import pandas
import pytest
from markdown_it import MarkdownIt

from pipediag import encoding
from pipediag.encoding import visible
from tests.encoding.poisoned import ACTING, POISON, acting, commands

SEEN_ALL_THE_SAME = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Signs of Arabic, Syriac and Kaithi numbers, which Unicode calls format characters."""
EGYPTIAN = range(0x13430, 0x13440)
"""They arrange hieroglyphs, and are drawn where they arrange none."""
MARKDOWN = MarkdownIt("commonmark").enable("table")


def test_every_character_that_acts_or_hides_is_escaped() -> None:
    kept = {
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ACTING and visible(chr(code)) == chr(code)
    }
    assert kept == {ord("\t"), ord("\n"), *SEEN_ALL_THE_SAME, *EGYPTIAN} & kept
    assert {ord("\t"), ord("\n")} <= kept


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\x1b[31m\x9b31m", r"\x1b[31m\x9b31m"),
        ("a\u202eb\u3164", r"a\u202eb\u3164"),
        ("\U000e0041tr\udcffain", r"\U000e0041tr\udcffain"),
        ("", ""),
        ("café 12 µs\N{NO-BREAK SPACE}% 日本語\t\u05e2\u05d1\n✔️ 👍🏽",) * 2,
    ],
)
def test_escapes_are_those_of_python_and_what_is_seen_stays(given: str, shown: str) -> None:
    assert visible(given) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error::x", r"\x3a:error::x"),
        (" \u3000\t::stop-commands::x", " \u3000\t" + r"\x3a:stop-commands::x"),
        ("said ##[error]x", r"said #\x23[error]x"),
        ("###[group]##[group]", r"##\x23[group]#\x23[group]"),
        ("##VSO[task.setvariable]x", r"#\x23VSO[task.setvariable]x"),
        ("##teamcity[x]", r"#\x23teamcity[x]"),
        *[(line, line) for line in ("", "a::b", ": x", "## heading", "#[x]", "std::vector")],
    ],
)
def test_a_line_gives_a_ci_runner_no_command(line: str, shown: str) -> None:
    assert encoding.inert(line) == shown


def test_a_github_command_is_one_line_with_its_properties_and_no_others() -> None:
    given = {"file": "a,line=1::b%.py", "line": "3"}
    assert encoding.github_command("error", given, "x\r\n50 %\x1b") == (
        "::error file=a%2Cline=1%3A%3Ab%25.py,line=3::x%0D%0A50 %25\\x1b"
    )


def test_json_holds_the_same_value_and_nothing_that_acts() -> None:
    value = {POISON: ["\x1b[2J", "##[error]x", "\ud800", "café\x7f\U000e0041"], "b": [1.5, None]}
    line = encoding.json_line(value)
    assert json.loads(line) == value
    assert line.count("\n") == 1
    assert not acting(line)
    assert commands(line) == []
    assert r"café\u007f\udb40\udc41" in line


@pytest.mark.parametrize(
    "given",
    [
        "a | b",
        "`code` **bold** _it_ ~gone~ $x$",
        "<img src=x> <!-- c --> &lt;",
        "[a](javascript:x) ![b](c)",
        "# heading",
        "- item",
        "1. item",
        "1) item",
        "=== ",
        "> quote",
        "@someone #12 GH-3 https://evil.example www.evil.example a@b.example",
        r"back\slash",
        "\x1b[31m\u202e",
        "70.0 % of 1.5",
    ],
)
def test_markdown_is_read_as_it_was_written(given: str) -> None:
    shown = MARKDOWN.render(encoding.markdown_text(given)).replace(encoding.NOTHING, "")
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    assert shown == f"<p>{visible(given.strip())}</p>\n"


def test_texts_come_back_from_xml() -> None:
    root = ET.Element("a", name=encoding.xml_text("<b> & \"c\" 'd'\r\n ]]> &lt;"))
    ET.SubElement(root, "e").text = encoding.xml_text("##[error]x -->\ud800\ufffe\uffff")
    document = encoding.xml_document(root)
    again = ET.fromstring(document.encode())

    assert again.get("name") == "<b> & \"c\" 'd' ]]> &lt;"
    assert again[0].text == r"##[error]x -->\ud800\ufffe\uffff"
    assert "##[" not in document


def cell(value: Any) -> str:
    frame = pandas.DataFrame({"column": [value], "end": ["end"]})
    _, [written, _] = csv.reader(io.StringIO(encoding.as_csv(frame)))
    return written


@pytest.mark.parametrize(
    "given", ["=1+1", "+1", "-1", "@SUM(A1)", *"\t=1 \r=1 \tword \n=1".split(" "), "  =1", '"=1']
)
def test_a_text_that_a_spreadsheet_would_compute_comes_behind_an_apostrophe(given: str) -> None:
    assert cell(given).startswith("'")
    assert cell(given).endswith(given[-1])
