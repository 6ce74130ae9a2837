"""What it buys to look up each different id of a batch once, table by table.

    python -m benchmarks.embedding_duplicates [--rounds N] [--table FILE]

For each table a process trains the same model with both lookups, in blocks that take turns. Ids are
drawn by Zipf's law, which repeats the frequent ones; both write the rows of the batch alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.comparison import Ratio, summarise
from benchmarks.duplicate_arms import LOOKUPS, DuplicatesPlan
from benchmarks.embedding_update import told_by, told_machine
from benchmarks.update_arms import Block, Framework

CASES = (
    (10_000, 16, 1.3, "sgd"),
    (10_000, 128, 1.1, "sgd"),
    (10_000, 128, 1.3, "sgd"),
    (10_000, 512, 1.3, "sgd"),
    (300_000, 128, 1.1, "sgd"),
    (300_000, 128, 1.3, "sgd"),
    (300_000, 128, 1.3, "lazy"),
)
"""Rows, dim, exponent of the distribution, update."""


@dataclass(frozen=True)
class Row:
    """One line of the table: blocks of both by round, milliseconds a step."""

    rows: int
    dim: int
    update: str
    repeated_percent: float
    ms: dict[str, list[float]]

    @property
    def ratio(self) -> Ratio:
        """The step by all ids over the one by different ids, round by round."""
        every, different = (self.ms[arm] for arm in LOOKUPS)
        return summarise([one / other for one, other in zip(every, different, strict=True)])


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option("--block", "block_s", default=0.3, show_default=True, help="Seconds of a block.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
def main(rounds: int, block_s: float, table: Path | None) -> None:
    """Time every table and print its line."""
    machine, found = "", []
    for size, dim, zipf, update in CASES:
        ran, row = timed(DuplicatesPlan(size, dim, zipf, update, rounds, block_s))
        machine = machine or told_machine(ran)
        found.append(row)
        click.echo(line(row))
    if table is not None:
        head = f"{machine}. {rounds} rounds of {block_s:g} s a block, 256 x 100 ids a step."
        table.write_text(markdown(found, head), encoding="utf-8")


def timed(plan: DuplicatesPlan) -> tuple[Framework, Row]:
    """The blocks of a process of its own.

    Raises:
        click.ClickException: it failed.
    """
    what = f"{plan.rows:,} rows of {plan.dim}"
    ran, repeated, *blocks = told_by("benchmarks.duplicate_arms", asdict(plan), what)
    ms: dict[str, list[float]] = {arm: [] for arm in LOOKUPS}
    for block in (Block(**one) for one in blocks):
        ms[block.arm].append(block.ms_per_step)
    return Framework(**ran), Row(plan.rows, plan.dim, plan.update, repeated, ms)


def line(row: Row) -> str:
    """For the terminal."""
    return "  ".join(f"{cell:>10}" for cell in _cells(row))


def markdown(rows: Sequence[Row], head: str) -> str:
    """A table of all."""
    lines = [
        head,
        "",
        "| rows | dim | update | repeat | all ids, ms a step | different ids, ms a step "
        "| times as fast |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    every, different = (f"{np.median(row.ms[arm]):.2f}" for arm in LOOKUPS)
    ratio = row.ratio
    return [
        f"{row.rows:,}",
        str(row.dim),
        "LazyAdam" if row.update == "lazy" else "SGD",
        f"{row.repeated_percent:.0f} %",
        every,
        different,
        f"{ratio.median:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]",
    ]


if __name__ == "__main__":
    main()
