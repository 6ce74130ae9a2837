"""Writes the table of keys in docs/session.md: `python -m pipediag.session.reference`.

It is made of the docstrings that stand below the session's fields.
"""

from __future__ import annotations

from pathlib import Path

from pipediag.session.schema import session_schema

PAGE = Path(__file__).parents[2] / "docs" / "session.md"

_BEGIN = "<!-- Made by `python -m pipediag.session.reference`. -->\n"
_END = "<!-- The rest is written by hand. -->\n"


def table() -> str:
    """Return a row for each key of the session; why one is missing needs no row of its own."""
    keys = session_schema()["properties"]
    rows = [
        f"| `{name}` | {' '.join(key.get('description', '').split())} |"
        for name, key in keys.items()
        if not name.endswith("_missing")
    ]
    return "\n".join(["| key | what it holds |", "|---|---|", *rows]) + "\n"


def with_table(page: str) -> str:
    """Return the page with the table as it should be."""
    before, rest = page.split(_BEGIN)
    after = rest.split(_END)[1]
    return f"{before}{_BEGIN}{table()}{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
