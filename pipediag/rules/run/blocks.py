"""Rows of the ledger that are one piece of the script, as the lines of one function are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipediag.session.ledger import IN_FRAMEWORK, OWN_LINE, READING, RunPart

NEIGHBOURS = 3
"""Lines of a file that lie no further apart are taken for one loop of it. Own choice: between two
of them lies a blank line or a comment."""

_COMPREHENSION = re.compile(r"(\.<locals>\.)?<(listcomp|setcomp|dictcomp|genexpr)>")


@dataclass(frozen=True)
class Block:
    """Rows that one change of the script would shorten together."""

    rows: tuple[RunPart, ...]

    @property
    def hottest(self) -> RunPart:
        return max(self.rows, key=lambda row: row.seconds)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows)

    @property
    def count(self) -> int | None:
        """How often it came, where a row says so."""
        return max((row.count for row in self.rows if row.count is not None), default=None)

    @property
    def in_framework_s(self) -> float:
        """Of its seconds, those in which a framework's own code ran."""
        return sum(row.seconds for row in self.rows if (row.what or "").endswith(IN_FRAMEWORK))

    @property
    def what(self) -> str:
        """What it is, whosever code ran."""
        return _own(self.hottest.what or "")


def blocks_of(rows: Iterable[RunPart]) -> list[Block]:
    """The blocks of these rows, the costliest first; what has neither place nor name is in none."""
    named: dict[tuple[str | None, str, int | None], list[RunPart]] = {}
    lines: list[RunPart] = []
    for row in rows:
        if row.what is None:
            continue
        what = _own(row.what)
        if what == OWN_LINE:
            lines.append(row)
        else:
            line = row.line if what == READING else None
            named.setdefault((row.file, what, line), []).append(row)
    blocks = [Block(tuple(group)) for group in (*named.values(), *_neighbours(lines))]
    return sorted(blocks, key=lambda block: -block.seconds)


def _own(what: str) -> str:
    """Without whose code ran; what a comprehension does is done by the code that holds it."""
    words = _COMPREHENSION.sub("", what.removesuffix(IN_FRAMEWORK))
    return OWN_LINE if words == "in ``" else words


def _neighbours(lines: Iterable[RunPart]) -> list[list[RunPart]]:
    groups: list[list[RunPart]] = []
    for row in sorted(lines, key=lambda row: (row.file or "", row.line or 0)):
        last = groups[-1][-1] if groups else None
        near = last is not None and last.file == row.file
        if near and last is not None and (row.line or 0) - (last.line or 0) <= NEIGHBOURS:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups
