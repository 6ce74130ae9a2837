"""Writes docs/rules.md from the rules' own descriptions: `python -m pipediag.rules.reference`."""

from __future__ import annotations

from pathlib import Path

from pipediag.rules.registry import CAUSES

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"

_HEAD = """\
# Rules

Each rule reads a session and says whether one thing slows training or spoils its results. A rule
about speed fails only where the measurement says that it matters. `pipediag explain RULE` prints
why it matters, what to change, and where its thresholds come from.

This page is made by `python -m pipediag.rules.reference`.

| Rule | When it fails | Severity |
|---|---|---|
"""


def markdown() -> str:
    """Return the whole page: a table with one line for each rule."""
    rows = (
        f"| `{rule}` | {'; '.join(meta.title_failed for meta in causes)} | {causes[0].severity} |"
        for rule, causes in CAUSES.items()
    )
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
