"""What row-wise Adam buys whole models: a recommender with eight tables, and skip-gram.

    python -m benchmarks.embedding_models [--rounds N] [--table FILE] [MODELS...]

For each model and way of looking up, a process trains it with Keras' Adam and with LazyAdam, in
blocks that take turns. How well they learn is another question: see `benchmarks.embedding_loss`.
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
from benchmarks.embedding_update import LOOKUPS, told_by, told_machine
from benchmarks.model_arms import MODELS, ModelPlan, Tables
from benchmarks.update_arms import ARMS, Block, Framework


@dataclass(frozen=True)
class Row:
    """One line of the table: blocks of both arms by round, milliseconds a step."""

    model: str
    lookup: str
    tables: Tables
    ms: dict[str, list[float]]

    @property
    def ratio(self) -> Ratio:
        """Keras' step over the row-wise one, round by round."""
        keras, lazy = (self.ms[arm] for arm in ARMS)
        return summarise([ours / theirs for ours, theirs in zip(keras, lazy, strict=True)])


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=2), default=8, show_default=True)
@click.option("--block", "block_s", default=1.0, show_default=True, help="Seconds of a block.")
@click.option("--jit/--no-jit", default=False, help="Compile the step with XLA.")
@click.option("--lookup", type=click.Choice(list(LOOKUPS)), help="Only this one.")
@click.option("--scale", default=1.0, show_default=True, help="Of the rows of all tables.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("models", nargs=-1, type=click.Choice(list(MODELS)))
def main(
    rounds: int,
    block_s: float,
    jit: bool,
    lookup: str | None,
    scale: float,
    table: Path | None,
    models: tuple[str, ...],
) -> None:
    """Time every model and print its line."""
    machine, rows = "", []
    for model in models or MODELS:
        for way in [lookup] if lookup else LOOKUPS:
            ran, row = timed(ModelPlan(model, way, rounds, block_s, jit, scale))
            machine = machine or told_machine(ran)
            rows.append(row)
            click.echo(line(row))
    if table is not None:
        compiled = ", compiled by XLA" if jit else ""
        head = f"{machine}. {rounds} rounds of {block_s:g} s a block{compiled}."
        table.write_text(markdown(rows, head), encoding="utf-8")


def timed(plan: ModelPlan) -> tuple[Framework, Row]:
    """The blocks of a process of its own.

    Raises:
        click.ClickException: it failed.
    """
    ran, tables, *blocks = told_by("benchmarks.model_arms", asdict(plan), plan.model)
    ms: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for block in (Block(**one) for one in blocks):
        ms[block.arm].append(block.ms_per_step)
    return Framework(**ran), Row(plan.model, plan.lookup, Tables(**tables), ms)


def line(row: Row) -> str:
    """For the terminal."""
    keras, lazy = (f"{np.median(row.ms[arm]):.2f}" for arm in ARMS)
    return f"{row.model:12} {row.lookup:6} {keras:>9} {lazy:>9}  {_said(row.ratio)}"


def markdown(rows: Sequence[Row], head: str) -> str:
    """A table of all."""
    lines = [
        head,
        "",
        "| model | tables | rows, and of these a step | lookup | Keras' Adam, ms a step "
        "| LazyAdam, ms a step | times as fast |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        keras, lazy = (f"{np.median(row.ms[arm]):.2f}" for arm in ARMS)
        lines.append(
            f"| {row.model} | {row.tables.tables}, {row.tables.bytes / 1e6:.0f} MB "
            f"| {row.tables.rows:,}, {row.tables.rows_a_step:,.0f} | {LOOKUPS[row.lookup]} "
            f"| {keras} | {lazy} | {_said(row.ratio)} |"
        )
    return "\n".join(lines) + "\n"


def _said(ratio: Ratio) -> str:
    return f"{ratio.median:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


if __name__ == "__main__":
    main()
