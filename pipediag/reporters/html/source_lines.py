"""The user's source on the page: a patch line by line, and the call that is meant in a line."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from pipediag.encoding.diff import applicable
from pipediag.session.pipeline import Operation

MOST_LINES = 40
"""Of one patch; the file that is offered has all of them."""
MOST_LINKED_BYTES = 6_000
"""Of a patch that the page offers as a file, which is in the page once more for that."""
_LONGEST_LINE = 200
_CALL = re.compile(r"\b[A-Za-z_]\w*\(")
_QUOTES = "'\""


@dataclass(frozen=True)
class PatchLine:
    kind: Literal["added", "removed", "same", "gap"]
    text: str


def patch_lines(diff: str) -> list[PatchLine]:
    """A diff without its headers; a gap stands for the lines between two places."""
    lines: list[PatchLine] = []
    for line in applicable(diff).split("\n")[:-1]:
        text = line.removesuffix("\r").expandtabs(4)[:_LONGEST_LINE]
        if text.startswith("@@"):
            if lines:
                lines.append(PatchLine("gap", "…"))
        elif text.startswith("+") and not text.startswith("+++ "):
            lines.append(PatchLine("added", text))
        elif text.startswith("-") and not text.startswith("--- "):
            lines.append(PatchLine("removed", text))
        elif text.startswith(" "):
            lines.append(PatchLine("same", text))
    return _without_blank_ends(lines)


def _without_blank_ends(lines: list[PatchLine]) -> list[PatchLine]:
    shown = [n for n, line in enumerate(lines) if line.kind != "same" or line.text.strip()]
    return lines[shown[0] : shown[-1] + 1] if shown else []


def patch_link(diff: str) -> str | None:
    """The patch as an address that holds it; None where it is too long for the page."""
    content = applicable(diff).encode("utf-8", "backslashreplace")
    if len(content) > MOST_LINKED_BYTES:
        return None
    return f"data:text/x-diff;charset=utf-8;base64,{base64.b64encode(content).decode()}"


def marked(op: Operation) -> Markup:
    """The first line of an operation's call, which is marked where the line has other calls, too.

    Which of several calls of the same name is meant can't be told from the line: then none is.
    """
    code = (op.code or "").strip()[:_LONGEST_LINE]
    starts = [found.start() for found in re.finditer(rf"\b{re.escape(op.kind)}\(", code)]
    if len(starts) != 1 or len(_CALL.findall(code)) < 2:
        return Markup(escape(code))
    start = starts[0]
    end = _end_of_call(code, start)
    before, call, after = code[:start], code[start:end], code[end:]
    return Markup("{}<mark>{}</mark>{}").format(before, call, after)


def _end_of_call(code: str, start: int) -> int:
    """Behind the bracket that closes the call; the line's end where that stands further down."""
    depth, quote = 0, ""
    for at in range(start, len(code)):
        letter = code[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in _QUOTES:
            quote = letter
        elif letter == "#":
            return at
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(code)
