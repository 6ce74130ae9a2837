from __future__ import annotations

import io
import sys
import unicodedata
from collections.abc import Callable

import pytest

from pipediag.encoding import csv, github, html, markdown, terminal, xml
from pipediag.encoding.visible import (
    clipped,
    escaped_unseen,
    visible,
    visible_line,
    visible_start,
    without_surrogates,
)
from tests.encoding.poisoned import ACTING
from tests.encoding.work import cost_of

SEEN_ALL_THE_SAME = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Signs of Arabic, Syriac and Kaithi numbers, which Unicode calls format characters."""
EGYPTIAN = range(0x13430, 0x13440)
"""They arrange hieroglyphs, and are drawn where they arrange none."""


def test_every_character_that_acts_or_hides_is_spelled_out() -> None:
    left = {
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ACTING and visible(chr(code)) == chr(code)
    }
    assert left == {ord("\t"), ord("\n"), *SEEN_ALL_THE_SAME, *EGYPTIAN} & left
    assert {ord("\t"), ord("\n")} <= left


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb", r"a\u202eb"),
        ("\U000e0041", r"\U000e0041"),
        ("tr\udcffain", r"tr\udcffain"),
        ("\u3164", r"\u3164"),
    ],
)
def test_it_is_spelled_as_python_spells_it(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text", ["", "café 12 µs\N{NO-BREAK SPACE}%", "日本語\t\u05e2\u05d1\n", "✔️ 👍🏽"]
)
def test_what_is_seen_stays(text: str) -> None:
    assert visible(text) == text


def test_only_halves_of_characters_are_what_utf_8_lacks() -> None:
    assert without_surrogates("\x1b\udcff") == "\x1b\\udcff"


def test_json_spells_in_units_of_utf_16() -> None:
    assert escaped_unseen("\x7f\u2028\U000e0041") == r"\u007f\u2028\udb40\udc41"


def test_a_cut_is_shown() -> None:
    assert clipped("word", 4) == "word"
    assert clipped("words", 4) == "wor…"


@pytest.mark.parametrize("character", ["x", "é", "\x1b", "\u202e", "\U000e0041"])
@pytest.mark.parametrize("count", [1, 9, 10, 11, 50])
def test_the_start_of_a_text_is_that_of_the_whole(character: str, count: int) -> None:
    text = character * count
    assert visible_start(text, 10) == clipped(visible(text), 10)


@pytest.mark.parametrize("text", ["a  b\n\tc", " a ", "word " * 3, "word " * 30, "x" * 200])
def test_a_line_has_one_blank_for_many(text: str) -> None:
    assert visible_line(text, 40) == clipped(" ".join(text.split()), 40)


def test_what_is_after_many_blanks_is_not_looked_for() -> None:
    assert visible_line("a" + " " * 1_000 + "b", 10) == "a …"


LONG = "é\u202e" * 1_000_000
ENCODERS: dict[str, Callable[[str], object]] = {
    "csv": lambda text: csv.TableWriter(io.StringIO(), ["x"]).writerows([[text]]),
    "github": lambda text: github.command("error", {"file": text}, text),
    "html": html.shown,
    "markdown": markdown.text,
    "terminal": terminal.one_line,
    "xml": xml.text,
}


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS)
def test_no_more_of_a_text_is_looked_at_than_is_shown(encode: Callable[[str], object]) -> None:
    """A session may name its script with megabytes, and have thousands of findings in it."""
    encode(LONG[:100])
    cost, _ = cost_of(lambda: encode(LONG))
    assert cost.peak_bytes < 2_000_000
    assert cost.calls < 100_000
