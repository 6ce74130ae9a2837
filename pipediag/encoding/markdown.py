"""Markdown for GitHub: text in it stays text, and refers to nobody and nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipediag.encoding.visible import visible_line, visible_start

LONGEST_TEXT = 4_000
"""Characters of one cell or paragraph."""

_PUNCTUATION = re.compile(r"[\\`*_\[\]<>|~&$#]")
_BLOCK = re.compile(r"(?:\d{1,9}(?=[.)](?: |$))|(?=[-+=]))")
"""What would begin a list, a rule or a heading, at the start of a text."""
_REFERENCE = re.compile(r"[@#](?=\w)|\bGH-(?=\d)|(?<=:)(?=//)|\bwww(?=\.)")
"""Where a mention, an issue or a link would be seen; a backslash does not prevent it."""
_BACKTICKS = re.compile("`+")
_APART = "<!-- -->"
"""Shown as nothing, and divides the text in two."""


def text(value: str) -> str:
    """Text that ends no cell, is not read as markup, mentions nobody and links nowhere."""
    plain = visible_line(value, LONGEST_TEXT)
    parts: list[str] = []
    end = 0
    for found in _REFERENCE.finditer(plain):
        parts.append(plain[end : found.end()])
        end = found.end()
    parts.append(plain[end:])
    escaped = _APART.join(_PUNCTUATION.sub(r"\\\g<0>", part) for part in parts)
    start = _BLOCK.match(escaped)
    return f"{start[0]}\\{escaped[start.end() :]}" if start else escaped


def heading(level: int, *texts: str) -> str:
    """A heading; the texts are joined by colons."""
    return f"{'#' * level} {': '.join(map(text, texts))}"


def code(language: str, lines: Sequence[str]) -> list[str]:
    """Lines of code as a block that none of them ends."""
    shown = [visible_start(line, LONGEST_TEXT) for line in lines]
    runs = (len(found[0]) for line in shown for found in _BACKTICKS.finditer(line))
    fence = "`" * max(3, max(runs, default=0) + 1)
    return [f"{fence}{language}", *shown, fence]


def row(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(text, cells))} |"
