from __future__ import annotations

from pipediag.rules.reference import PAGE, markdown


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run python -m pipediag.rules.reference"
