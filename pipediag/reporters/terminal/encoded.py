"""Keeps the terminal's text within what the terminal can show."""

from __future__ import annotations

import re

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from pipediag.encoding.text import inert, visible

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

_NO_BREAK = str.maketrans({"\N{NO-BREAK SPACE}": " ", _HELD: " ", "\t": " "})


def prose(text: str) -> str:
    """Text for lines broken at blanks: blanks in a row are one, no-break spaces do hold."""
    return held(visible(_ASCII_BLANK.sub(" ", text)).strip(" "))


def held(text: str) -> str:
    """The same with its blanks as they are."""
    return text.replace("\N{NO-BREAK SPACE}", _HELD)


def shortened(text: str, most: int) -> str:
    """At most so many characters: whole sentences where one fits, else whole words."""
    text = visible(_ASCII_BLANK.sub(" ", text)).strip(" ")
    if len(text) <= most:
        return text
    sentences = text[: most + 1].rfind(". ") + 1
    if sentences > most // 3:
        return text[:sentences]
    words = text[:most].rfind(" ")
    return text[: words if words > most // 3 else most - 1].rstrip(" ,;:") + "…"


class Encoded:
    """A renderable in characters that the console has, without blanks at the ends of lines.

    All that reports print goes through here: a text from a session or a profile gives neither the
    terminal nor a CI runner a command, and brackets in it are no markup.
    """

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        options = options.update(markup=False, highlight=False)
        for line in console.render_lines(self._renderable, options, pad=False):
            text = [Segment(_encodable(part.text, console.encoding), part.style) for part in line]
            text = _inert(text)
            # A control character took no cell; what stands for it takes some.
            text = Segment.adjust_line_length(text, options.max_width, pad=False)
            while text and not text[-1].text.strip():
                text.pop()
            if text:
                text[-1] = Segment(text[-1].text.rstrip(), text[-1].style)
            yield from text
            yield Segment.line()


def _inert(line: list[Segment]) -> list[Segment]:
    """A line may begin with what stood in the middle of a text before it was broken."""
    text = "".join(part.text for part in line)
    harmless = inert(text)
    return line if harmless == text else [Segment(harmless)]


def _encodable(text: str, encoding: str) -> str:
    text = visible(text.translate(_NO_BREAK))
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
