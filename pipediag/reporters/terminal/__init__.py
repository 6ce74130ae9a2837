"""Output on the terminal, in characters that it has."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pipediag.encoding import clipped, inert, visible
from pipediag.reporters.words.quantities import bind_units

MAX_WIDTH = 120

_UNBROKEN = "\ue000"
"""Stands for a no-break space until lines are broken: Rich breaks them at those too."""
_ASCII_BLANK = re.compile(r"[ \t\n\r\f\v]+")
_NO_BREAK = str.maketrans({"\N{NO-BREAK SPACE}": " ", _UNBROKEN: " ", "\t": " "})


def prose(text: str, style: str = "") -> Text:
    """Return text for lines broken at blanks: blanks in a row are one, no-break spaces hold."""
    return Text(unbroken(visible(_ASCII_BLANK.sub(" ", text)).strip(" ")), style)


def unbroken(text: str) -> str:
    """Return the text with no-break spaces at which no line is broken."""
    return text.replace("\N{NO-BREAK SPACE}", _UNBROKEN)


def shortened(text: str, most: int, style: str = "") -> Text:
    """Return prose of at most so many characters, with numbers and their units on one line."""
    return prose(bind_units(clipped(_ASCII_BLANK.sub(" ", text).strip(" "), most)), style)


def right(text: str) -> Text:
    """Return a cell at the right of its column."""
    return Text(text, justify="right")


def facts(gap: int = 2) -> Table:
    """Return an empty table of two columns, in which the second is broken into lines."""
    grid = Table.grid(padding=(0, gap))
    grid.add_column(no_wrap=True)
    grid.add_column()
    return grid


def named_rows(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Return rows behind their names; a name that comes again is not repeated."""
    grid, before = facts(), ""
    for name, shown in rows:
        grid.add_row(Text("" if name == before else name, "dim"), shown)
        before = name
    return grid


class Encoded:
    """A renderable in characters that the console has, without blanks at the ends of lines.

    A text from a session or a profile gives neither the terminal nor a CI runner a command, and
    brackets in it are no markup.
    """

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        options = options.update(markup=False, highlight=False)
        for line in console.render_lines(self._renderable, options, pad=False):
            text = [Segment(_encodable(part.text, console.encoding), part.style) for part in line]
            # A line may begin with what stood in the middle of a text before it was broken.
            joined = "".join(part.text for part in text)
            if inert(joined) != joined:
                text = [Segment(inert(joined))]
            # A control character took no cell; what stands for it takes some.
            text = Segment.adjust_line_length(text, options.max_width, pad=False)
            while text and not text[-1].text.strip():
                text.pop()
            if text:
                text[-1] = Segment(text[-1].text.rstrip(), text[-1].style)
            yield from text
            yield Segment.line()


def _encodable(text: str, encoding: str) -> str:
    """Return characters that the encoding has, one for one, so that columns stay where they are."""
    return visible(text.translate(_NO_BREAK)).encode(encoding, "replace").decode(encoding)
