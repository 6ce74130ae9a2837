"""Keeps the terminal's text within what the terminal can show."""

from __future__ import annotations

import re

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

_ASCII = str.maketrans(
    {
        "\N{FULL BLOCK}": "#",
        "\N{MIDDLE DOT}": ".",
        "\N{BLACK CIRCLE}": "*",
        "\N{BLACK RIGHT-POINTING TRIANGLE}": ">",
        "\N{RIGHTWARDS ARROW}": ">",
        "\N{HORIZONTAL ELLIPSIS}": "~",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{MICRO SIGN}": "u",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    }
)
"""One character for one, so that columns stay where they are."""

_HELD = "\ue000"
"""Stands for a no-break space until lines are broken: Rich breaks them at those too."""
_ASCII_BLANK = re.compile(r"[ \t\n\r\f\v]+")

_NO_BREAK_AND_CONTROLS = {0xA0: " ", ord(_HELD): " "} | {
    code: "?" for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029) if code != 0x0A
}
"""A control character in a file name must not reach the terminal."""


def prose(text: str) -> str:
    """Text for lines broken at blanks: blanks in a row are one, no-break spaces do hold."""
    return held(_ASCII_BLANK.sub(" ", text).strip(" "))


def held(text: str) -> str:
    """The same with its blanks as they are."""
    return text.replace("\N{NO-BREAK SPACE}", _HELD)


def shortened(text: str, most: int) -> str:
    """At most so many characters: whole sentences where one fits, else whole words."""
    text = _ASCII_BLANK.sub(" ", text).strip(" ")
    if len(text) <= most:
        return text
    sentences = text[: most + 1].rfind(". ") + 1
    if sentences > most // 3:
        return text[:sentences]
    words = text[:most].rfind(" ")
    return text[: words if words > most // 3 else most - 1].rstrip(" ,;:") + "…"


class Encoded:
    """A renderable in characters that the console has, without blanks at the ends of lines."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._renderable, options, pad=False):
            text = [Segment(_encodable(part.text, console.encoding), part.style) for part in line]
            # A control character took no cell; what stands for it takes one.
            text = Segment.adjust_line_length(text, options.max_width, pad=False)
            while text and not text[-1].text.strip():
                text.pop()
            if text:
                text[-1] = Segment(text[-1].text.rstrip(), text[-1].style)
            yield from text
            yield Segment.line()


def _encodable(text: str, encoding: str) -> str:
    text = text.translate(_NO_BREAK_AND_CONTROLS)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
