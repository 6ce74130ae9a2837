from __future__ import annotations

from pipediag.session.model import Session
from pipediag.session.reference import PAGE, table, with_table


def test_the_committed_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run python -m pipediag.session.reference"


def test_every_section_has_a_row_with_words() -> None:
    rows = dict(row[3:-2].split("` | ") for row in table().splitlines()[2:])
    assert set(rows) == {name for name in Session.model_fields if not name.endswith("_missing")}
    assert not [name for name, words in rows.items() if not words], "give them a docstring"
