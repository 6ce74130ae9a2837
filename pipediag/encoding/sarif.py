"""Texts of a SARIF log: a viewer shows them as they are, and finds no link and no address in them.

The log itself is JSON, which `pipediag.encoding.json` writes.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote

from pipediag.encoding.visible import clipped, visible_line, without_surrogates

LONGEST_TEXT = 4_000
"""Characters of one message."""
LONGEST_PATH = 1_000
"""Characters, before any of them is written as its bytes."""


def message(value: str) -> str:
    """A plain-text message: without placeholders (3.11.5) and embedded links (3.11.6)."""
    plain = visible_line(value, LONGEST_TEXT)
    return plain.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def uri(file: str) -> str:
    """A path as a URI; a relative one can be taken for no address of another scheme or host."""
    path = clipped(without_surrogates(file[: LONGEST_PATH + 1]), LONGEST_PATH)
    if PurePosixPath(path).is_absolute():
        return f"file:///{quote(path.lstrip('/'))}"
    return quote(path)
