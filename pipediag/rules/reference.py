"""Writes docs/rules.md from the rules' own descriptions: `python -m pipediag.rules.reference`."""

from __future__ import annotations

from pathlib import Path

from pipediag.rules.registry import METAS

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"

_HEAD = """\
# Rules

Each rule reads a session and says whether one thing slows training or spoils its results. A rule
about speed fails only where the measurement says that it matters. `pipediag explain RULE` prints
what a rule looks at, what to change, and where its thresholds come from.

This page is made by `python -m pipediag.rules.reference`.

| Rule | When it fails | Severity |
|---|---|---|
"""


def markdown() -> str:
    """Return the whole page: a table with one line for each rule."""
    rows = (f"| `{meta.id}` | {meta.title_failed} | {meta.severity} |" for meta in METAS.values())
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
