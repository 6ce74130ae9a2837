"""How often the gate fails what did not change, and how often it finds what got slower.

    python -m benchmarks.gate [--comparisons N] [--table FILE]
    python -m benchmarks.gate --real N

Without `--real` the runs are simulated (`gate_machine.py`), and what is measured of them is judged
by what `compare` and `ab` judge with. Beside it, of the same runs, two rules that look at means
alone: a plain threshold, and pytest-benchmark's `--benchmark-compare-fail=mean:10%`, by its own
code (`pip install --group gate-peers`). Goals: of the same code at most 1 % fails; of a slow-down
of a fifth 95 % is found. Not a timing.

`--real N` makes N calls of `pipediag ab` of two copies of a sample instead, while another load
comes and goes on one core; see `gate_real.py`. It wants a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.gate_machine import NOISES, Machine
from benchmarks.gate_peers import PEERS
from benchmarks.gate_table import Row, markdown
from pipediag.comparison import Comparison, compare
from pipediag.comparison.interleaving import Limits, Side, interleave
from pipediag.session.model import Session

COMPARISONS = 200
SPREADS = (0.05, 0.1)
"""Of a stretch of a run, of logarithms."""
SLOWDOWNS = (0.0, 0.1, 0.2, 0.5)
LIMITS = Limits(rounds=10, seconds=float("inf"))
"""As `pipediag ab` has them, but for the time: simulated runs take none."""


@dataclass(frozen=True)
class Measured:
    """What one comparison was made of, and what it says."""

    base: Sequence[Session]
    head: Sequence[Session]
    comparison: Comparison


def by_turns(machine: Machine, seed: int) -> Measured:
    """`pipediag ab`."""

    def run(side: Side, _round: int, _left: float) -> Session:
        return machine.run(side)

    judged = partial(compare, looks=LIMITS.looks)
    found = interleave(run, judged, LIMITS, Random(seed), clock=lambda: 0.0)
    assert found.comparison is not None
    return Measured(found.base, found.head, found.comparison)


def one_after_the_other(runs: int, machine: Machine, _seed: int) -> Measured:
    """`pipediag compare`, of all runs of base and then all of head."""
    base = [machine.run("base") for _ in range(runs)]
    head = [machine.run("head") for _ in range(runs)]
    return Measured(base, head, compare(base, head))


WAYS: dict[str, Callable[[Machine, int], Measured]] = {
    "ab": by_turns,
    "compare, 5 runs": partial(one_after_the_other, 5),
    "compare, 3 runs": partial(one_after_the_other, 3),
    "compare, 1 run": partial(one_after_the_other, 1),
}


def row(way: str, noise: str, spread: float, slowdown: float, comparisons: int) -> Row:
    """So many comparisons of one kind."""
    failures: Counter[str] = Counter()
    undecided = 0
    for seed in range(comparisons):
        found = WAYS[way](Machine(noise, spread, slowdown, seed), seed)
        failures["pipediag"] += found.comparison.outcome == "regressed"
        undecided += found.comparison.outcome == "inconclusive"
        for name, fails in PEERS.items():
            failures[name] += fails(found.base, found.head)
    return Row(way, noise, spread, slowdown, comparisons, dict(failures), undecided)


def rows(comparisons: int) -> Iterator[Row]:
    """Everything that the table has."""
    for way in WAYS:
        for noise in NOISES:
            for spread in SPREADS:
                for slowdown in SLOWDOWNS:
                    yield row(way, noise, spread, slowdown, comparisons)


def main() -> None:
    """Print the table, or what real comparisons said."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--comparisons", type=int, default=COMPARISONS, help="per line")
    parser.add_argument("--table", type=Path, help="write the table to this file too")
    parser.add_argument("--real", type=int, metavar="N", help="real comparisons in place of it")
    given = parser.parse_args()
    if given.real is not None:
        from benchmarks.gate_real import compare_copies

        sys.exit(compare_copies(given.real))
    table = markdown(list(rows(given.comparisons)), tuple(PEERS))
    print(table)
    if given.table is not None:
        given.table.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
