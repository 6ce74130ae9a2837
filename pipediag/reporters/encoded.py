"""Keeps the terminal's text within what the terminal can show."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

_ASCII = str.maketrans(
    {
        "█": "#",
        "▌": "#",
        "·": ".",
        "●": "*",
        "▶": ">",
        "→": ">",
        "…": "~",
        "–": "-",
        "—": "-",
        "×": "x",
        "µ": "u",
        "±": "~",
        "≥": ">",
        "≤": "<",
        "‘": "'",
        "’": "'",
        "“": '"',
        "”": '"',
    }
)
"""One character for one, so that columns stay where they are."""

_NO_BREAK_AND_CONTROLS = {0xA0: " "} | {
    code: "?" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x0A
}
"""A control character in a file name must not reach the terminal."""


class Encoded:
    """A renderable whose characters all exist in the console's encoding."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(_encodable(segment.text, console.encoding), segment.style)


def _encodable(text: str, encoding: str) -> str:
    text = text.translate(_NO_BREAK_AND_CONTROLS)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
