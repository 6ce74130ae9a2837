"""The user's source on the page: a patch line by line, and the call that is meant in a line."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup, escape

from pipediag.encoding.text import applicable
from pipediag.facts.order import SourcePlace
from pipediag.reporters.words.advice import FirstAdvice
from pipediag.session.findings import CallSpan, Finding, SourceExcerpt
from pipediag.session.pipeline import Operation

MOST_LINES = 40
"""Lines of one patch; the file that is offered has all of them."""
MOST_LINKED_BYTES = 6_000
"""Bytes of a patch that the page offers as a file, which is in the page once more for that."""
_LONGEST_LINE = 200
_BRIEF = 1
"""Lines above and below a change."""
_CALL = re.compile(r"\b[A-Za-z_]\w*\(")
_NO_CODE = re.compile(r"'[^']*'|\"[^\"]*\"|#.*")
"""Texts and comments, whose brackets close nothing."""
_HUNK = re.compile(r"@@ -(\d+)")


@dataclass(frozen=True)
class PatchLine:
    kind: Literal["added", "removed", "same", "gap"]
    text: str


def patch_lines(diff: str) -> list[PatchLine]:
    """Return a diff without its headers; a gap stands for the lines between two places."""
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


def brief_lines(diff: str) -> list[PatchLine]:
    """Return a diff with no more around a change than what it is recognised by."""
    lines = patch_lines(diff)
    changed = [n for n, line in enumerate(lines) if line.kind in ("added", "removed")]
    near = [
        line
        if any(-_BRIEF <= n - at <= _BRIEF for at in changed)
        # Brackets alone tell nobody where a change stands.
        and (line.kind != "same" or any(map(str.isalnum, line.text)))
        else PatchLine("gap", "…")
        for n, line in enumerate(lines)
    ]
    once = [
        line
        for before, line in zip([None, *near], near, strict=False)
        if line.kind != "gap" or before is None or before.kind != "gap"
    ]
    inner = [n for n, line in enumerate(once) if line.kind != "gap"]
    return _without_blank_ends(once[inner[0] : inner[-1] + 1]) if inner else []


def _without_blank_ends(lines: list[PatchLine]) -> list[PatchLine]:
    shown = [n for n, line in enumerate(lines) if line.kind != "same" or line.text.strip()]
    return lines[shown[0] : shown[-1] + 1] if shown else []


@dataclass(frozen=True)
class ExcerptLine:
    number: int
    text: Markup
    """The call that is meant is marked."""
    meant: bool
    far: bool
    """True for a line that a narrow page leaves out."""


def excerpt_lines(excerpt: SourceExcerpt, meant: int | None = None) -> list[ExcerptLine]:
    """Return the lines without their shared indent, and without blank ones at the ends.

    `meant` is the line to mark where that is another one than the excerpt's own.
    """
    there = range(excerpt.first_line, excerpt.first_line + len(excerpt.lines))
    line_meant = meant if meant is not None and meant in there else excerpt.line
    known = [line.removesuffix("\r")[:_LONGEST_LINE] for line in excerpt.lines]
    shown = [n for n, line in enumerate(known) if line.strip()]
    shared = min((len(known[n]) - len(known[n].lstrip(" \t")) for n in shown), default=0)
    numbered = [(excerpt.first_line + n, known[n]) for n in range(len(known))]
    return [
        ExcerptLine(
            number,
            _marked_from(line, shared, number, excerpt.call),
            meant=number == line_meant,
            far=abs(number - line_meant) > 1,
        )
        for number, line in (numbered[shown[0] : shown[-1] + 1] if shown else [])
    ]


def _marked_from(line: str, start: int, number: int, call: CallSpan | None) -> Markup:
    """Return the line from a column on, with its part of the call marked."""
    if call is None or not call.line <= number <= call.end_line:
        return Markup(escape(line[start:]))
    blank = len(line) - len(line.lstrip())
    begin = max(start, call.column if number == call.line else blank)
    end = max(begin, call.end_column if number == call.end_line else len(line))
    before, meant, after = line[start:begin], line[begin:end], line[end:]
    return (
        Markup("{}<mark>{}</mark>{}").format(before, meant, after)
        if meant
        else Markup(escape(line[start:]))
    )


def of_the_change(
    place: SourcePlace | None, first: FirstAdvice | None, excerpt: SourceExcerpt | None
) -> SourcePlace | None:
    """Return the line that the first advice changes, where the excerpt shows it.

    An optimizer is chosen in `compile`, and the finding about it stands at `fit`, which it slows.
    """
    if place is None or place.op_id is not None or first is None or excerpt is None:
        return place
    finding = first.finding
    if (finding.file, finding.line) != (place.file, place.line) or finding.patch is None:
        return place
    shown = range(excerpt.first_line, excerpt.first_line + len(excerpt.lines))
    removed = [line for line in _removed_lines(finding.patch.diff or "") if line in shown]
    if not removed or place.line in removed:
        return place
    return replace(place, line=removed[0])


def is_in_patch(finding: Finding, place: SourcePlace | None) -> bool:
    """Return True if the patch of an advice has the line that is shown, as it is."""
    if place is None or finding.patch is None or finding.file != place.file:
        return False
    return place.line in [*_removed_lines(finding.patch.diff or "")]


def is_elsewhere(finding: Finding, place: SourcePlace | None) -> bool:
    """Return True if an advice is about another line than the one that is shown."""
    if place is None or finding.file is None or finding.line is None:
        return False
    changed = [*_removed_lines(finding.patch.diff or "")] if finding.patch is not None else []
    return (finding.file, finding.line) != (place.file, place.line) and place.line not in changed


def _removed_lines(diff: str) -> Iterator[int]:
    """Yield the numbers of the lines that a patch takes away, in the file as it was."""
    number = 0
    for line in diff.split("\n"):
        if hunk := _HUNK.match(line):
            number = int(hunk[1])
        elif line.startswith("-") and not line.startswith("--- "):
            yield number
            number += 1
        elif line.startswith(" "):
            number += 1


def patch_link(diff: str) -> str | None:
    """Return the patch as an address that contains it; None where it is too long for the page."""
    content = applicable(diff).encode("utf-8", "backslashreplace")
    if len(content) > MOST_LINKED_BYTES:
        return None
    return f"data:text/x-diff;charset=utf-8;base64,{base64.b64encode(content).decode()}"


def marked(op: Operation) -> Markup:
    """Return the first line of an operation's call, marked where the line has other calls, too.

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
    """Return the place behind the closing bracket, or the end of the line."""
    depth = 0
    plain = _NO_CODE.sub(lambda found: " " * len(found[0]), code).rstrip()
    for at in range(start, len(plain)):
        depth += (plain[at] in "([{") - (plain[at] in ")]}")
        if depth == 0 and plain[at] in ")]}":
            return at + 1
    return len(plain)
