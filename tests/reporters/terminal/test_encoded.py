from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from pipediag.reporters.terminal.encoded import Encoded, prose, shortened


@pytest.mark.parametrize("width", range(8, 30))
def test_a_number_and_its_unit_stay_on_one_line(width: int) -> None:
    stream = io.StringIO()
    text = Text(prose("one  two\nthree 11.5\N{NO-BREAK SPACE}% four"))
    Console(file=stream, width=width).print(Encoded(text))

    assert any("11.5 %" in line for line in stream.getvalue().splitlines())


def test_a_long_text_ends_with_a_sentence_or_a_word() -> None:
    assert shortened("Short.", 20) == "Short."
    assert shortened("One thing. Another thing.", 15) == "One thing."
    assert shortened("One thing and another, too", 24) == "One thing and another…"
    assert shortened("x" * 30, 10) == "x" * 9 + "…"
