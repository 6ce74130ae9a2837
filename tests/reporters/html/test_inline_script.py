from __future__ import annotations

from importlib.resources import files

from pipediag.reporters.html.inline_script import style


def test_the_style_sheet_loses_blanks_alone_and_none_within_a_selector_or_a_value() -> None:
    sheet = files("pipediag.reporters.html").joinpath("templates", "report.css")
    text = sheet.read_text(encoding="utf-8")

    assert "".join(style().split()) == "".join(text.split())
    assert len(style()) < len(text) - 300
