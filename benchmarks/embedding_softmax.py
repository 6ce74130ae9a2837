"""What a sampled softmax buys against a full one, vocabulary by vocabulary.

    python -m benchmarks.embedding_softmax [--rounds N] [--table FILE] [CLASSES...]

For each vocabulary a process trains the same model with both, in blocks that take turns: that of
the samples `full_softmax` and `sampled_softmax`. How well they learn is another question.
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
from benchmarks.embedding_update import told_by, told_machine
from benchmarks.softmax_arms import SOFTMAXES, SoftmaxPlan
from benchmarks.update_arms import Block, Framework

CLASSES = (3_000, 30_000, 200_000)
DIM, DRAWN = 64, 512


@dataclass(frozen=True)
class Row:
    """One line of the table: blocks of both by round, milliseconds a step."""

    classes: int
    ms: dict[str, list[float]]

    @property
    def ratio(self) -> Ratio:
        """The full one's step over the sampled one's, round by round."""
        full, sampled = (self.ms[arm] for arm in SOFTMAXES)
        return summarise([whole / part for whole, part in zip(full, sampled, strict=True)])


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=2), default=8, show_default=True)
@click.option("--block", "block_s", default=0.5, show_default=True, help="Seconds of a block.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("classes", nargs=-1, type=click.IntRange(min=DRAWN + 1))
def main(rounds: int, block_s: float, table: Path | None, classes: tuple[int, ...]) -> None:
    """Time every vocabulary and print its line."""
    machine, rows = "", []
    for size in classes or CLASSES:
        ran, row = timed(SoftmaxPlan(size, DIM, DRAWN, rounds, block_s))
        machine = machine or told_machine(ran)
        rows.append(row)
        click.echo(line(row))
    if table is not None:
        head = f"{machine}. {rounds} rounds of {block_s:g} s a block, dim {DIM}, {DRAWN} drawn."
        table.write_text(markdown(rows, head), encoding="utf-8")


def timed(plan: SoftmaxPlan) -> tuple[Framework, Row]:
    """The blocks of a process of its own.

    Raises:
        click.ClickException: it failed.
    """
    ran, *blocks = told_by("benchmarks.softmax_arms", asdict(plan), f"{plan.classes:,} classes")
    ms: dict[str, list[float]] = {arm: [] for arm in SOFTMAXES}
    for block in (Block(**one) for one in blocks):
        ms[block.arm].append(block.ms_per_step)
    return Framework(**ran), Row(plan.classes, ms)


def line(row: Row) -> str:
    """For the terminal."""
    full, sampled = (f"{np.median(row.ms[arm]):.2f}" for arm in SOFTMAXES)
    return f"{row.classes:>9,} {full:>9} {sampled:>9}  {_said(row.ratio)}"


def markdown(rows: Sequence[Row], head: str) -> str:
    """A table of all."""
    lines = [
        head,
        "",
        "| classes | full softmax, ms a step | sampled softmax, ms a step | times as fast |",
        "|---|---|---|---|",
    ]
    for row in rows:
        full, sampled = (f"{np.median(row.ms[arm]):.2f}" for arm in SOFTMAXES)
        lines.append(f"| {row.classes:,} | {full} | {sampled} | {_said(row.ratio)} |")
    return "\n".join(lines) + "\n"


def _said(ratio: Ratio) -> str:
    return f"{ratio.median:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


if __name__ == "__main__":
    main()
