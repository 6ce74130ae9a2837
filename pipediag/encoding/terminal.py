"""Text for terminals and logs: it moves no cursor, sets no title and gives a CI no commands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipediag.encoding.github import inert
from pipediag.encoding.visible import MOST_BLANK, clipped, visible, visible_start

LONGEST_LINE = 4_000
"""Characters; what a person reads is far shorter."""

_BLANKS = re.compile(r"[ ]*[\t\n\r\f\v]+[ ]*")


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """What is one line for us stays one: line ends and tabs become blanks."""
    return inert(visible_start(_BLANKS.sub(" ", clipped(text, MOST_BLANK * longest)), longest))


def lines(texts: Iterable[str]) -> str:
    """Each text as one line, whatever is in it."""
    return "".join(f"{one_line(text)}\n" for text in texts)


def printable(text: str) -> str:
    """A message of several lines, in which line ends are ours."""
    return "\n".join(inert(visible(line.expandtabs())) for line in text.split("\n"))
