"""Writes docs/rules.md from the rules' own descriptions: `python -m pipediag.rules.reference`."""

from __future__ import annotations

from pathlib import Path

from pipediag.rules.description import paragraphs
from pipediag.rules.registry import METAS
from pipediag.rules.rule import Meta

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"

_HEAD = """\
# Rules

Each rule reads a session and says whether one thing slows training or spoils its results. A rule
about speed fails only where the measurement says that it matters. `pipediag explain RULE` prints
the same on a terminal.

This page is made by `python -m pipediag.rules.reference`.
"""


def markdown() -> str:
    """The whole page."""
    metas = METAS.values()
    index = [
        f"| [{meta.id}](#{meta.id}) | {meta.title_failed} | {meta.severity} |" for meta in metas
    ]
    table = "\n".join(["| Rule | When it fails | Severity |", "|---|---|---|", *index])
    return "\n".join([_HEAD, table, "", *(_section(meta) for meta in metas)])


def _section(meta: Meta) -> str:
    lines = [f"## {meta.id}", "", f"{meta.title_failed}.", ""]
    for heading, texts in paragraphs(meta):
        if len(texts) == 1:
            lines += [f"**{heading}.** {_sentence(texts[0])}", ""]
        else:
            lines += [f"**{heading}.**", "", *(f"- {text}" for text in texts), ""]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
