"""What the gate said in simulated comparisons, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

FALSE_GOAL, POWER_GOAL = 1.0, 95.0
"""Percent of the comparisons: of the same code that fail, and of a slow-down of a fifth that do."""
POWER_AT = 0.2


@dataclass(frozen=True)
class Row:
    """So many comparisons of one kind."""

    way: str
    noise: str
    spread: float
    """Standard deviation of a stretch, of logarithms."""
    slowdown: float
    """Of head's step, as a share of base's."""
    comparisons: int
    failures: dict[str, int]
    """By who judged."""
    undecided: int
    """By pipediag."""

    def percent(self, judge: str) -> float:
        """Of the comparisons that failed."""
        return 100.0 * self.failures[judge] / self.comparisons

    def interval(self, judge: str) -> tuple[float, float]:
        """Clopper and Pearson's of that, 95 %."""
        from scipy.stats import binomtest

        found = binomtest(self.failures[judge], self.comparisons).proportion_ci(0.95, "exact")
        return 100.0 * float(found.low), 100.0 * float(found.high)


def markdown(rows: Sequence[Row], peers: Sequence[str]) -> str:
    """A summary, and two tables for each way to compare: false failures, and what was found."""
    parts = list(_summary(rows))
    for way in dict.fromkeys(row.way for row in rows):
        of_way = [row for row in rows if row.way == way]
        parts += ["", f"## {way}", "", *_false_failures(of_way, peers), "", *_power(of_way, peers)]
    return "\n".join(parts) + "\n"


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    for way in dict.fromkeys(row.way for row in rows):
        same = [row for row in rows if row.way == way and row.slowdown == 0.0]
        slower = [row for row in rows if row.way == way and row.slowdown == POWER_AT]
        quiet = sum(row.percent("pipediag") <= FALSE_GOAL for row in same)
        found = sum(row.percent("pipediag") >= POWER_GOAL for row in slower)
        yield (
            f"- `{way}`: at most {FALSE_GOAL:g} % false failures under {quiet} of {len(same)} "
            f"kinds of noise; a fifth slower found in {POWER_GOAL:g} % under {found} of "
            f"{len(slower)}."
        )


def _false_failures(rows: Sequence[Row], peers: Sequence[str]) -> Iterator[str]:
    judges = ("pipediag", *peers)
    yield _line("The same code: failed", "stretch", *judges, "undecided by pipediag")
    yield _line("---", *["--:"] * (len(judges) + 2))
    for row in rows:
        if row.slowdown == 0.0:
            cells = [_failed(row, judge) for judge in judges]
            yield _line(row.noise, _spread(row), *cells, _percent(row.undecided, row))


def _power(rows: Sequence[Row], peers: Sequence[str]) -> Iterator[str]:
    slowdowns = sorted({row.slowdown for row in rows} - {0.0})
    ours = [f"{100 * one:g} % slower" for one in slowdowns]
    theirs = [f"{100 * POWER_AT:g} %, {peer}" for peer in peers]
    yield _line("Slower code: failed", "stretch", *ours, *theirs)
    yield _line("---", *["--:"] * (1 + len(ours) + len(theirs)))
    for noise, spread in dict.fromkeys((row.noise, row.spread) for row in rows):
        found = {r.slowdown: r for r in rows if (r.noise, r.spread) == (noise, spread)}
        cells = [_percent(found[one].failures["pipediag"], found[one]) for one in slowdowns]
        cells += [_percent(found[POWER_AT].failures[peer], found[POWER_AT]) for peer in peers]
        yield _line(noise, _spread(found[0.0]), *cells)


def _failed(row: Row, judge: str) -> str:
    low, high = row.interval(judge)
    return f"{row.percent(judge):.3g} % [{low:.2g}, {high:.2g}]"


def _percent(count: int, row: Row) -> str:
    return f"{100.0 * count / row.comparisons:.3g} %"


def _spread(row: Row) -> str:
    return f"{100 * row.spread:g} %"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
