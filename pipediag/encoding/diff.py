"""A unified diff for whoever reads or applies it: what `patch` needs stays as it is."""

from __future__ import annotations

from pipediag.encoding.github import inert
from pipediag.encoding.visible import visible


def applicable(diff: str) -> str:
    """The diff with its tabs and line ends; every other character that acts is spelled out."""
    return "\n".join(_line(line) for line in diff.split("\n"))


def _line(line: str) -> str:
    text = line.removesuffix("\r")
    return inert(visible(text)) + line[len(text) :]
