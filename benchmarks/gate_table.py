"""What the gate said in comparisons, for people: a section of the page for each way to compare."""

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
    rounds: float
    """Runs of each version, on average."""

    def percent(self, judge: str) -> float:
        """Of the comparisons that failed."""
        return 100.0 * self.failures[judge] / self.comparisons


def interval(failures: int, comparisons: int) -> str:
    """Clopper and Pearson's of the share that failed, 95 %, in percent."""
    from scipy.special import betaincinv

    passed = comparisons - failures
    low = float(betaincinv(failures, passed + 1, 0.025)) if failures else 0.0
    high = float(betaincinv(failures + 1, passed, 0.975)) if passed else 1.0
    return f"[{100.0 * low:.2g}, {100.0 * high:.2g}]"


def markdown(rows: Sequence[Row], peers: Sequence[str]) -> str:
    """Of one way: a summary, and two tables, false failures and what was found."""
    parts = [f"## `{rows[0].way}`", "", _summary(rows), "", *_false_failures(rows, peers)]
    return "\n".join([*parts, "", *_power(rows, peers)]) + "\n"


def _summary(rows: Sequence[Row]) -> str:
    same = [row for row in rows if row.slowdown == 0.0]
    slower = [row for row in rows if row.slowdown == POWER_AT]
    quiet = sum(row.percent("pipediag") <= FALSE_GOAL for row in same)
    found = sum(row.percent("pipediag") >= POWER_GOAL for row in slower)
    return (
        f"At most {FALSE_GOAL:g} % false failures under {quiet} of {len(same)} kinds of noise; a "
        f"fifth slower found in {POWER_GOAL:g} % under {found} of {len(slower)}."
    )


def _false_failures(rows: Sequence[Row], peers: Sequence[str]) -> Iterator[str]:
    judges = ("pipediag", *peers)
    yield line("The same code: failed", "stretch", "of", *judges, "undecided", "runs of each")
    yield line("---", *["--:"] * (len(judges) + 4))
    for row in rows:
        if row.slowdown == 0.0:
            cells = [_failed(row, judge) for judge in judges]
            ours = (_percent(row.undecided, row), f"{row.rounds:.1f}")
            yield line(row.noise, _spread(row), f"{row.comparisons:,}", *cells, *ours)


def _power(rows: Sequence[Row], peers: Sequence[str]) -> Iterator[str]:
    slowdowns = sorted({row.slowdown for row in rows} - {0.0})
    ours = [f"{100 * one:g} % slower" for one in slowdowns]
    theirs = [f"{100 * POWER_AT:g} %, {peer}" for peer in peers]
    runs = [f"{100 * one:g} %: runs of each" for one in slowdowns]
    yield line("Slower code: failed", "stretch", "of", *ours, *theirs, *runs)
    yield line("---", *["--:"] * (2 + len(ours) + len(theirs) + len(runs)))
    for noise, spread in dict.fromkeys((row.noise, row.spread) for row in rows):
        found = {r.slowdown: r for r in rows if (r.noise, r.spread) == (noise, spread)}
        cells = [_percent(found[one].failures["pipediag"], found[one]) for one in slowdowns]
        cells += [_percent(found[POWER_AT].failures[peer], found[POWER_AT]) for peer in peers]
        cells += [f"{found[one].rounds:.1f}" for one in slowdowns]
        yield line(noise, _spread(found[0.0]), f"{found[POWER_AT].comparisons:,}", *cells)


def _failed(row: Row, judge: str) -> str:
    return f"{row.percent(judge):.3g} % {interval(row.failures[judge], row.comparisons)}"


def _percent(count: int, row: Row) -> str:
    return f"{100.0 * count / row.comparisons:.3g} %"


def _spread(row: Row) -> str:
    return f"{100 * row.spread:g} %"


def line(*cells: str) -> str:
    """Of a table."""
    return f"| {' | '.join(cells)} |"
