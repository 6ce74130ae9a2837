"""The table of the session's keys in docs/session.md, made of the docstrings below its fields.

Run `python -m pipediag.session.schema` after the model has changed.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from pathlib import Path

from pipediag.session.model import Session

PAGE = Path(__file__).parents[2] / "docs" / "session.md"

_BEGIN = "<!-- Made by `python -m pipediag.session.schema`. -->\n"
_END = "<!-- The rest is written by hand. -->\n"


def _docstrings() -> dict[str, str]:
    """Return the string that stands below each field of the session."""
    [definition] = ast.parse(inspect.getsource(Session)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, below in pairwise(definition.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=key)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[key] = " ".join(words.split())
    return found


def with_table(page: str) -> str:
    """Return the page with a row for each key; why one is missing needs no row of its own."""
    before, rest = page.split(_BEGIN)
    words = _docstrings()
    keys = [name for name in Session.model_fields if not name.endswith("_missing")]
    rows = [f"| `{name}` | {words[name]} |" for name in keys]
    table = "\n".join(["| key | what it holds |", "|---|---|", *rows])
    return f"{before}{_BEGIN}{table}\n{_END}{rest.split(_END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
