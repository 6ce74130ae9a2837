"""How wide text may be: as the terminal, where there is one."""

from __future__ import annotations

import textwrap
from typing import TextIO

from pipediag.runner.progress import columns

NARROWEST = 30
"""Below this a paragraph beside an indent would be one word a line."""


def text_width(stream: TextIO, most: int) -> int:
    """Characters in a line of running text on that stream; `most` where it is no terminal."""
    return max(NARROWEST, min(most, columns(stream))) if stream.isatty() else most


def fitted(text: str, stream: TextIO) -> str:
    """Each line wrapped to the terminal, below its own indent; elsewhere a line stays one line."""
    if not stream.isatty():
        return text
    width = max(NARROWEST, columns(stream))
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line,
        width,
        subsequent_indent=indent,
        drop_whitespace=True,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
