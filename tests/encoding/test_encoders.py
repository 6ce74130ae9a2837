from __future__ import annotations

import ast
import csv
import io
import json
import sys
import tracemalloc
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas
import pytest
from markdown_it import MarkdownIt
from markupsafe import Markup

import pipediag
from pipediag.encoding import markup, text
from pipediag.encoding.text import visible
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


def test_only_surrogates_are_what_utf_8_lacks() -> None:
    assert text.without_surrogates("\x1b\udcff") == "\x1b\\udcff"


@pytest.mark.parametrize("character", ["x", "é", "\x1b", "\u202e", "\U000e0041"])
@pytest.mark.parametrize("count", [1, 9, 10, 11, 50])
def test_the_start_of_a_text_is_that_of_the_whole(character: str, count: int) -> None:
    whole = visible(character * count)
    start = text.visible_start(character * count, 10)
    assert start == (whole if len(whole) <= 10 else f"{whole[:9]}…")


@pytest.mark.parametrize("given", ["a  b\n\tc", " a ", "word " * 3, "word " * 30, "x" * 200])
def test_a_line_has_one_blank_for_several(given: str) -> None:
    assert text.visible_line(given, 40) == text.clipped(" ".join(given.split()), 40)


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
    assert text.inert(line) == shown


def test_a_github_command_is_one_line_with_its_properties_and_no_others() -> None:
    given = {"file": "a,line=1::b%.py", "line": "3"}
    assert text.github_command("error", given, "x\r\n50 %\x1b") == (
        "::error file=a%2Cline=1%3A%3Ab%25.py,line=3::x%0D%0A50 %25\\x1b"
    )


def test_lines_of_a_terminal() -> None:
    assert text.one_line("  a \r\n\t b\x0bc  d") == "  a b c  d"
    assert text.one_line("\n::error::x") == r" \x3a:error::x"
    assert text.one_line("a\u2028b\x85c") == r"a\u2028b\x85c"
    assert text.lines(["one", "two\nGate: passed"]) == "one\ntwo Gate: passed\n"
    assert text.printable("one\n  two\x1b]0;t\x07\n ::error::x") == (
        "one\n  two\\x1b]0;t\\x07\n \\x3a:error::x"
    )


def test_json_holds_the_same_value_and_nothing_that_acts() -> None:
    value = {POISON: ["\x1b[2J", "##[error]x", "\ud800", "café\x7f\U000e0041"], "b": [1.5, None]}
    line = text.json_line(value)
    assert json.loads(line) == value
    assert line.count("\n") == 1
    assert not acting(line)
    assert commands(line) == []
    assert r"café\u007f\udb40\udc41" in line


def test_html_values_are_escaped_in_markup_too_which_stays_whole() -> None:
    shown = markup.html_value(Markup("<b>a\u202eb</b>"))
    assert isinstance(shown, Markup)
    assert shown == r"<b>a\u202eb</b>"
    assert markup.html_value("a\u202eb") == r"a\u202eb"
    assert markup.html_value(3.5) == 3.5
    assert len(markup.html_value(Markup("x" * 100_000))) == 100_000


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
    shown = MARKDOWN.render(markup.markdown_text(given)).replace(markup.NOTHING, "")
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    assert shown == f"<p>{visible(given.strip())}</p>\n"


@pytest.mark.parametrize("mark", ["@someone", "#12", "GH-12", "http://x", "www.x.example"])
def test_what_github_would_link_is_divided(mark: str) -> None:
    assert markup.NOTHING in markup.markdown_text(f"see {mark}")


def test_a_row_and_a_heading_of_markdown() -> None:
    table = "\n".join(["| a | b |", "|---|---|", markup.markdown_row(["x | y\n| z", "`|`"])])
    assert MARKDOWN.render(table).count("<td>") == 2
    assert markup.markdown_heading(3, "a\n# b", "failed") == "### a \\# b: failed"


def test_texts_come_back_from_xml() -> None:
    root = ET.Element("a", name=markup.xml_text("<b> & \"c\" 'd'\r\n ]]> &lt;"))
    ET.SubElement(root, "e").text = markup.xml_text("##[error]x -->\ud800\ufffe\uffff")
    document = markup.xml_document(root)
    again = ET.fromstring(document.encode())

    assert again.get("name") == "<b> & \"c\" 'd' ]]> &lt;"
    assert again[0].text == r"##[error]x -->\ud800\ufffe\uffff"
    assert "##[" not in document


def cell(value: Any) -> str:
    frame = pandas.DataFrame({"column": [value], "end": ["end"]})
    _, [written, _] = csv.reader(io.StringIO(markup.as_csv(frame)))
    return written


@pytest.mark.parametrize(
    "given", ["=1+1", "+1", "-1", "@SUM(A1)", *"\t=1 \r=1 \tword \n=1".split(" "), "  =1", '"=1']
)
def test_a_text_that_a_spreadsheet_would_compute_comes_behind_an_apostrophe(given: str) -> None:
    assert cell(given).startswith("'")
    assert cell(given).endswith(given[-1])


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-1, "-1"), (1e-7, "1e-07"), (None, ""), (True, "true"), (False, "false"), ("a\rb", r"a\x0db")]
    + [(given, given) for given in ("map(parse)", 'say "a, b"\nand c', "a=1; b=-2", "", "café")],
)
def test_other_cells(value: Any, shown: str) -> None:
    assert cell(value) == shown


LONG = "é\u202e" * 1_000_000
ENCODERS: dict[str, tuple[Callable[[str], str], int]] = {
    "csv": (markup.csv_cell, markup.LONGEST_CELL),
    "github": (lambda given: text.github_command("error", {}, given), text.LONGEST_LINE + 20),
    "html": (markup.html_value, markup.LONGEST_HTML),
    "markdown": (markup.markdown_text, 2 * markup.LONGEST_TEXT),
    "terminal": (text.one_line, text.LONGEST_LINE),
    "xml": (markup.xml_text, markup.LONGEST_TEXT),
}


@pytest.mark.parametrize(("encode", "longest"), ENCODERS.values(), ids=ENCODERS)
def test_no_more_of_a_text_is_looked_at_than_is_shown(
    encode: Callable[[str], str], longest: int
) -> None:
    """A session may name its script with megabytes, and have thousands of findings in it."""
    encode(LONG[:100])
    tracemalloc.start()
    try:
        length = len(encode(LONG))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert length <= 6 * longest
    assert peak_bytes < 2_000_000


ROOT = Path(pipediag.__file__).parent
IN_THE_USERS_PROCESS = ("capture", "child", "doctor/framework.py")
"""Parts that run there, or have a program in a text that does."""
ONLY_IN = {
    "click.echo": {"cli/common.py"},
    "csv.writer": set[str](),
    "cells.to_csv": {"encoding/markup.py"},
    "csv.DictWriter": set[str](),
    "ET.tostring": {"encoding/markup.py"},
    "console.print": {"reporters/terminal/__init__.py"},
    ".model_dump_json": {"session/record.py"},
    "print": set[str](),
}
"""Calls by which text leaves, and the modules that may make them with encoded texts."""


def calls(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return called | {f".{name.rpartition('.')[2]}" for name in called}


def test_each_medium_has_one_module_so_that_nothing_forgets_its_encoder() -> None:
    found = {call: set[str]() for call in ONLY_IN}
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(IN_THE_USERS_PROCESS):
            for call in calls(path) & ONLY_IN.keys():
                found[call].add(name)
    assert found == ONLY_IN
