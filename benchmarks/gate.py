"""How often the gate fails what did not change, and how often it finds what got slower.

    python -m benchmarks.gate [--way NAME] [--comparisons N] [--same-code N] [--table PAGE]
    python -m benchmarks.gate --real N [--kept FILE] [--table PAGE]

Without `--real` the runs are simulated (`gate_machine.py`), and what is measured of them is judged
by what `compare` and `ab` judge with. Beside it, of the same runs, two rules that look at means
alone: a plain threshold, and pytest-benchmark's `--benchmark-compare-fail=mean:10%`, by its own
code (`uv pip install --group gate-peers`). Goals: of the same code at most 1 % fails; of a
slow-down of a fifth 95 % is found. Not a timing.

`--real N` makes N calls of `pipediag ab` of two copies of a sample instead, while another load
comes and goes on one core; see `gate_real.py`. It wants a machine that does nothing else. What each
says is kept, so that a later call goes on where an earlier one ended.

With `--table` the tables replace those of the same name in that page, as each is ready.
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
from benchmarks.gate_page import replace_section
from benchmarks.gate_peers import PEERS
from benchmarks.gate_real import KEPT, compare_copies
from benchmarks.gate_table import Row, markdown
from pipediag.comparison import Comparison, compare
from pipediag.comparison.interleaving import Limits, Side, interleave
from pipediag.session.model import Session

COMPARISONS = 200
SAME_CODE = 1_000
"""Comparisons of the same code: what happens once in a hundred is not seen in two hundred."""
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

    def judged(base: Sequence[Session], head: Sequence[Session], share: float) -> Comparison:
        return compare(base, head, error_share=share)

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
    undecided = runs = 0
    for seed in range(comparisons):
        found = WAYS[way](Machine(noise, spread, slowdown, seed), seed)
        failures["pipediag"] += found.comparison.outcome == "regressed"
        undecided += found.comparison.outcome == "inconclusive"
        runs += len(found.head)
        for name, fails in PEERS.items():
            failures[name] += fails(found.base, found.head)
    rounds = runs / comparisons
    return Row(way, noise, spread, slowdown, comparisons, dict(failures), undecided, rounds)


def rows(way: str, slower: int, same: int) -> Iterator[Row]:
    """Everything that the table of a way has, of so many comparisons a line."""
    for noise in NOISES:
        for spread in SPREADS:
            for slowdown in SLOWDOWNS:
                yield row(way, noise, spread, slowdown, slower if slowdown else same)


def main() -> None:
    """Print the tables, or what real comparisons said."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--way", choices=WAYS, action="append", help="only this one; may be given again"
    )
    parser.add_argument("--comparisons", type=int, default=COMPARISONS, help="per line")
    parser.add_argument(
        "--same-code", type=int, default=SAME_CODE, help="per line of the same code"
    )
    parser.add_argument(
        "--table", type=Path, metavar="PAGE", help="replace the tables of this page"
    )
    parser.add_argument("--real", type=int, metavar="N", help="real comparisons in place of it")
    parser.add_argument("--kept", type=Path, default=KEPT, help=f"what real ones said [{KEPT}]")
    given = parser.parse_args()
    if given.real is not None:
        sys.exit(compare_copies(given.real, given.kept, given.table))
    for way in given.way or WAYS:
        table = markdown(list(rows(way, given.comparisons, given.same_code)), tuple(PEERS))
        print(table, flush=True)
        if given.table is not None:
            replace_section(given.table, way, table)


if __name__ == "__main__":
    main()
