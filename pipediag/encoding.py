"""Encoders of text that others wrote, one for each medium that pipediag writes.

A session or a profile can come from a stranger. On terminals, in CI logs, diffs and JSON,
characters that act or hide are written as escapes: none moves a cursor, changes the direction of
writing, or is taken for a command by a CI runner. In HTML, Markdown, XML and CSV text stays text,
with no markup, link or formula in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    import pandas


LONGEST_LINE = 4_000
"""Characters of a line of a log or of an annotation; what a person reads is far shorter."""

LOOKED_AT = 4
"""Characters that are read for each that is shown, where blanks are taken out first."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but for tab and newline; a C1 one can start a command
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # no width, ends of lines, direction of writing
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Variation selectors of the first plane are not among them: they belong to many emoji."""

_SEEN_ASCII = bytes((*b"\t\n", *range(0x20, 0x7F)))
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANKS = re.compile(r"[ ]*[\t\n\r\f\v]+[ ]*")
_COMMAND = re.compile(r"\A:(?=:)|(?<=#)#(?=(?:vso|teamcity)?\[)", re.IGNORECASE)
"""`::name` at the start of a line, and `##[name]` anywhere: GitHub, Azure Pipelines, TeamCity."""


def visible(text: str) -> str:
    r"""Return the text with `\x1b` for an escape character, `\u202e` for a change of direction.

    Tabs and newlines are kept: what they do depends on the medium.
    """
    return _UNSEEN.sub(_as_python, text) if _may_hide(text) else text


def visible_start(text: str, most: int) -> str:
    """Return the visible text, at most so many characters, and look at no more of it."""
    return clipped(visible(text[: most + 1]), most)


def visible_line(text: str, most: int) -> str:
    """Return the start of the visible text on one line, with one blank for several."""
    return visible_start(" ".join(clipped(text, LOOKED_AT * most).split()), most)


def clipped(text: str, most: int) -> str:
    """Return at most so many characters; an ellipsis stands for the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"


def without_styles(text: str) -> str:
    """Remove bold and colours, which messages of Keras have wherever they are shown."""
    return _STYLE.sub("", text)


def without_surrogates(text: str) -> str:
    r"""Return what UTF-8 can hold: `\udcff` for a byte of a file name that is no UTF-8."""
    return _SURROGATE.sub(_as_python, text)


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Return the text as one line of a terminal or log: line ends and tabs become blanks."""
    return inert(visible_start(_BLANKS.sub(" ", clipped(text, LOOKED_AT * longest)), longest))


def printable(text: str) -> str:
    """Return a message of several lines for a terminal or log; its line ends are ours."""
    return "\n".join(inert(visible(line.expandtabs())) for line in text.split("\n"))


def applicable(diff: str) -> str:
    """Return a diff with its tabs and line ends, which `patch` needs, and escapes otherwise."""

    def escaped(line: str) -> str:
        text = line.removesuffix("\r")
        return inert(visible(text)) + line[len(text) :]

    return "\n".join(map(escaped, diff.split("\n")))


def inert(line: str) -> str:
    r"""Return a line that no CI runner takes for a command: `\x3a:error::x` for `::error::x`."""
    blank = line[: len(line) - len(line.lstrip())]
    return blank + _COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", line[len(blank) :])


def github_command(name: str, properties: Mapping[str, str], message: str) -> str:
    """Return a workflow command, such as an `error` with a `file` and a `line`, as one line."""

    def data(text: str) -> str:
        shown = clipped(text, LONGEST_LINE).replace("\t", " ").replace("%", "%25")
        return inert(visible(shown.replace("\r", "%0D").replace("\n", "%0A")))

    def written(text: str) -> str:
        return data(text).replace(":", "%3A").replace(",", "%2C")

    listed = ",".join(f"{key}={written(value)}" for key, value in properties.items())
    return f"::{name} {listed}::{data(message)}"


def json_line(value: object) -> str:
    """Return a value of lists, dictionaries, texts and numbers as one line of harmless JSON."""
    return harmless_json(json.dumps(value, ensure_ascii=False, allow_nan=False)) + "\n"


def harmless_json(text: str) -> str:
    """Return JSON of the same value that acts on no terminal and gives a CI runner no command."""
    escaped = _UNSEEN.sub(_as_json, text) if _may_hide(text) else text
    return escaped.replace("##", "#\\u0023")


def _may_hide(text: str) -> bool:
    # Twenty times as fast for ASCII, which most texts are.
    return not text.isascii() or bool(text.encode().translate(None, _SEEN_ASCII))


def _as_python(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _as_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


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
    if hasattr(value, "__html__"):
        return type(value)(visible(value))
    return visible_start(value, LONGEST_HTML) if isinstance(value, str) else value


def markdown_text(value: str) -> str:
    """Return text that ends no cell, is not read as markup, mentions nobody and links nowhere."""
    # No such control is left in what is visible.
    divided = _REFERENCE.sub("\\g<0>\0", visible_line(value, LONGEST_TEXT))
    escaped = _PUNCTUATION.sub(r"\\\g<0>", divided).replace("\0", NOTHING)
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
    shown = visible_line(value, LONGEST_TEXT)
    return clipped(_NOT_IN_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", shown), LONGEST_TEXT)


def xml_document(root: ET.Element) -> str:
    """Return the tree as an indented document, with `#&#35;[` for `##[`, a command to a CI."""
    from xml.etree import ElementTree as ET

    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.replace("##", "#&#35;")


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
