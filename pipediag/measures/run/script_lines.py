"""The script's own lines that were seen running outside of all spans, put where they belong."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pipediag.measures.run.epochs import Projected
from pipediag.measures.run.places import Place, Spent
from pipediag.session.ledger import EVALUATING_LOOP, IN_FRAMEWORK, OWN_LINE
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import SeenLine, SeenLines

_LINED = frozenset({"before_training", "between_loops", "epoch_end", "after_training"})
_FEWEST_MS = 50
"""Own choice: under a few looks at fifty a second, a line was met by chance."""

_MOST = 0.5

Shares = dict[Place, dict[Place, float]]
_Evaluating = Mapping[tuple[str | None, int | None], Place]
"""The loops that evaluate, by their lines."""


def line_shares(
    spent: Sequence[Spent], seen: Sequence[SeenLines], ns_at: Mapping[Place, int]
) -> Shares:
    """Return the shares of each place that its lines took, and imports as start-up. Lines that were
    seen for longer than a place has are scaled down to it."""
    evaluating = {
        (one.place.file, one.place.line): one.place
        for one in spent
        if one.place.part == "evaluation" and one.place.what == EVALUATING_LOOP
    }
    by_place: dict[Place, dict[SeenLine, int]] = {}
    for place, line in _placed(spent, seen):
        if place.part not in _LINED or place.what is not None:
            continue
        key = replace(line, ns=0, at_ns=None)
        lines = by_place.setdefault(place, {})
        lines[key] = lines.get(key, 0) + line.ns
    return {
        place: _shares(place, lines, ns_at[place], evaluating) for place, lines in by_place.items()
    }


def at_line_of(loop: RecordedLoop, shares: Shares) -> frozenset[Place]:
    """Return places where the loop's own line ran for most of the ends of its epochs."""
    return frozenset(
        place
        for place, lines in shares.items()
        if place.part == "epoch_end"
        and place.loop_id == loop.id
        and sum(
            share for own, share in lines.items() if (own.file, own.line) == (loop.file, loop.line)
        )
        >= _MOST
    )


def hottest_lines(spent: Sequence[Spent], seen: Sequence[SeenLines]) -> dict[Place, int]:
    """Return the line met longest of each callback of the script's own."""
    met: dict[Place, dict[int, int]] = {}
    for place, line in _placed(spent, seen):
        named = place.part == "epoch_end" and place.what is not None and place.line is not None
        if named and place.file == line.file:
            lines = met.setdefault(place, {})
            lines[line.line] = lines.get(line.line, 0) + line.ns
    hottest = {place: max(lines, key=lambda line: lines[line]) for place, lines in met.items()}
    return {
        place: line for place, line in hottest.items() if met[place][line] >= _FEWEST_MS * 1_000_000
    }


def _placed(spent: Sequence[Spent], seen: Sequence[SeenLines]) -> Iterator[tuple[Place, SeenLine]]:
    """Each line with the place of the moment at which it was met; none before the run."""
    starts = [one.start_ns for one in spent]
    for group in seen:
        middle_ns = (group.start_ns + group.end_ns) // 2
        for line in group.lines:
            index = bisect_right(starts, middle_ns if line.at_ns is None else line.at_ns) - 1
            if index >= 0:
                yield spent[index].place, line


def divided_by_lines(
    whole: Mapping[Place, Projected], shares: Mapping[Place, Mapping[Place, float]]
) -> dict[Place, Projected]:
    """Return the same time, measured or projected, with that of lines at their places."""
    divided: dict[Place, Projected] = {}
    for place, one in whole.items():
        lines = shares.get(place, {})
        rest = {place: max(0.0, 1.0 - sum(lines.values()))}
        for own, share in (*rest.items(), *lines.items()):
            if share <= 0:
                continue
            part = one.share(share)
            divided[own] = divided[own].together(part) if own in divided else part
    return divided


def _shares(
    place: Place, lines: Mapping[SeenLine, int], whole_ns: int, evaluating: _Evaluating
) -> dict[Place, float]:
    seen_ns = sum(lines.values())
    if whole_ns <= 0 or seen_ns <= 0:
        return {}
    scale = min(1.0, whole_ns / seen_ns)
    shares: dict[Place, float] = {}
    for line, ns in lines.items():
        if line.importing or ns * scale >= _FEWEST_MS * 1_000_000:
            # An import was seen in its own code, and in a framework's that it imports.
            own = _of_line(place, line, evaluating)
            shares[own] = shares.get(own, 0.0) + ns * scale / whole_ns
    return shares


def _of_line(place: Place, line: SeenLine, evaluating: _Evaluating) -> Place:
    if line.importing:
        return Place("startup", "imports", line.file, line.line)
    evaluation = evaluating.get((line.file, line.line))
    if evaluation is not None and place.part != "before_training":
        return evaluation
    what = OWN_LINE if line.function == "<module>" else f"in `{line.function}`"
    whose = IN_FRAMEWORK if line.in_framework else ""
    return replace(place, what=what + whose, file=line.file, line=line.line)
