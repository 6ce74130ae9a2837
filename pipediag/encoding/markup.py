"""Text within HTML, Markdown, XML and CSV: it stays text, with no markup, link or formula in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from pipediag.encoding.text import clipped, visible, visible_line, visible_start

if TYPE_CHECKING:
    import pandas

LONGEST_HTML = 2_000
"""Characters of one text; arguments and messages of the framework can be endless."""
LONGEST_TEXT = 4_000
"""Characters of a cell or paragraph of Markdown, of an attribute or element of XML."""
LONGEST_CELL = 32_000
"""Characters of a cell of CSV; spreadsheets hold 32,767."""

_PUNCTUATION = re.compile(r"[\\`*_\[\]<>|~&$#]")
_BLOCK = re.compile(r"(?:\d{1,9}(?=[.)](?: |$))|(?=[-+=]))")
"""The start of a text that would begin a list, a rule or a heading."""
_REFERENCE = re.compile(r"[@#](?=\w)|\bGH-(?=\d)|(?<=:)(?=//)|\bwww(?=\.)")
"""The place of a mention, an issue or a link; a backslash does not prevent it."""
_BACKTICKS = re.compile("`+")
NOTHING = "<!-- -->"
"""Markdown that is shown as nothing, and divides a text in two."""

_NOT_IN_XML = re.compile("[\ufffe\uffff]")
"""Characters that XML 1.0 forbids and `visible` keeps."""

_FORMULA = re.compile(r"""[\s"'`]*[=+\-@\uff1d\uff0b\uff0d\uff20]""")
"""The start of a formula, in full width too, also behind blanks and quotes, which an import may
strip."""


def html_value(value: Any) -> Any:
    """Return what a template prints, before it is escaped: for an environment's `finalize`.

    Unseen characters become escapes also in markup of ours, which may hold escaped text.
    """
    if isinstance(value, Markup):
        return Markup(visible(value))
    return visible_start(value, LONGEST_HTML) if isinstance(value, str) else value


def markdown_text(value: str) -> str:
    """Return text that ends no cell, is not read as markup, mentions nobody and links nowhere."""
    plain = visible_line(value, LONGEST_TEXT)
    parts: list[str] = []
    end = 0
    for found in _REFERENCE.finditer(plain):
        parts.append(plain[end : found.end()])
        end = found.end()
    parts.append(plain[end:])
    escaped = NOTHING.join(_PUNCTUATION.sub(r"\\\g<0>", part) for part in parts)
    start = _BLOCK.match(escaped)
    return f"{start[0]}\\{escaped[start.end() :]}" if start else escaped


def markdown_heading(level: int, *texts: str) -> str:
    """Return a heading; the texts are joined by colons."""
    return f"{'#' * level} {': '.join(map(markdown_text, texts))}"


def markdown_code(language: str, lines: Sequence[str]) -> list[str]:
    """Return lines of code as a block that none of them ends."""
    shown = [visible_start(line, LONGEST_TEXT) for line in lines]
    runs = (len(found[0]) for line in shown for found in _BACKTICKS.finditer(line))
    fence = "`" * max(3, max(runs, default=0) + 1)
    return [f"{fence}{language}", *shown, fence]


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(markdown_text, cells))} |"


def xml_text(value: str) -> str:
    """Return one line of characters that XML can hold; `xml_document` escapes the markup."""
    return _for_xml(visible_line(value, LONGEST_TEXT))


def xml_code(line: str) -> str:
    """Return a line of code with its indent, in characters that XML can hold."""
    return _for_xml(visible_start(line, LONGEST_TEXT))


def xml_document(root: ET.Element) -> str:
    """Return the tree as an indented document, with `#&#35;[` for `##[`, a command to a CI."""
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.replace("##", "#&#35;")


def _for_xml(text: str) -> str:
    return clipped(_NOT_IN_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text), LONGEST_TEXT)


def as_csv(frame: pandas.DataFrame, *, header: bool = True) -> str:
    """Return a table as CSV; a text that would begin a formula comes behind an apostrophe."""
    cells = frame.apply(lambda column: column.astype(object).map(csv_cell))
    return str(cells.to_csv(index=False, header=header, lineterminator="\n"))


def csv_cell(value: Any) -> Any:
    """Return a value as a cell has it: numbers as they are, negative ones too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _csv_text(value) if isinstance(value, str) else value


@lru_cache(maxsize=1024)
def _csv_text(text: str) -> str:
    shown = visible_start(text[: LONGEST_CELL + 1].replace("\t", " "), LONGEST_CELL)
    return f"'{shown}" if _FORMULA.match(shown) or text[:1] in ("\t", "\r") else shown
