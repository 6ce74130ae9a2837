"""The script's own lines that were seen running outside of all spans, put where they belong."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from pipediag.measures.run.places import Place, Spent
from pipediag.session.timeline import SeenLine, SeenLines

_LINED = frozenset({"before_training", "between_loops", "epoch_end", "after_training"})
_FEWEST_MS = 50
"""Own choice: under a few looks at fifty a second, a line was met by chance."""


def divided_by_lines(
    spent: Sequence[Spent], seen: Sequence[SeenLines], ns_at: dict[Place, int]
) -> dict[Place, int]:
    """The same time, with that of lines at places of their own, and imports as start-up.

    No place loses more than it has: lines that were seen for longer are scaled down to it.
    """
    by_place: dict[Place, dict[SeenLine, int]] = {}
    starts = [one.start_ns for one in spent]
    for group in seen:
        index = bisect_right(starts, (group.start_ns + group.end_ns) // 2) - 1
        place = spent[index].place if index >= 0 else None
        if place is None or place.part not in _LINED or place.what is not None:
            continue
        lines = by_place.setdefault(place, {})
        for line in group.lines:
            key = replace(line, ns=0)
            lines[key] = lines.get(key, 0) + line.ns
    divided = dict(ns_at)
    for place, lines in by_place.items():
        _divide(divided, place, lines)
    return divided


def _divide(ns_at: dict[Place, int], place: Place, lines: dict[SeenLine, int]) -> None:
    whole = ns_at.get(place, 0)
    scale = min(1.0, whole / max(1, sum(lines.values())))
    for line, ns in lines.items():
        taken = round(ns * scale)
        if not line.importing and taken < _FEWEST_MS * 1_000_000:
            continue
        own = _of_line(place, line)
        taken = min(taken, ns_at[place])
        ns_at[place] -= taken
        ns_at[own] = ns_at.get(own, 0) + taken


def _of_line(place: Place, line: SeenLine) -> Place:
    if line.importing:
        return Place("startup", "imports", line.file, line.line)
    what = None if line.function == "<module>" else f"in `{line.function}`"
    return replace(place, what=what or "the script's own line", file=line.file, line=line.line)
