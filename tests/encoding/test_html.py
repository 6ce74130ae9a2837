from __future__ import annotations

from markupsafe import Markup

from pipediag.encoding.html import LONGEST_TEXT, shown


def test_what_changes_the_direction_is_spelled_out_in_markup_too() -> None:
    assert shown("a\u202eb") == r"a\u202eb"
    markup = shown(Markup("<b>a\u202eb</b>"))
    assert isinstance(markup, Markup)
    assert markup == r"<b>a\u202eb</b>"


def test_a_text_has_an_end_and_markup_is_whole() -> None:
    assert len(shown("x" * 100_000)) == LONGEST_TEXT
    assert len(shown(Markup("x" * 100_000))) == 100_000


def test_other_values_stay() -> None:
    assert shown(3.5) == 3.5
