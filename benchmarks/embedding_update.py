"""What a step of an embedding takes, table by table: Keras' optimizers and the row-wise ones.

    python -m benchmarks.embedding_update [--brief] [--table FILE] [--plot FILE] [ROWS...]

For each table, way of looking up and optimizer, a process trains the same model with Keras' own
optimizer and with that of pipediag.optimizers, in blocks that take turns. Two ways of looking up:
Keras' Embedding layer, which copies the table in every step once rows of it have been written, and
one that reads the batch's rows alone. Where both do not fit into memory together, each is timed
that fits alone, and no ratio is given. Table and chart are written after each line of them, so that
a run that is cut short leaves what it has.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.comparison import FEWEST_ROUNDS, Ratio, summarise
from benchmarks.line_chart import Line, Panel, line_chart
from benchmarks.machine import machine_of
from benchmarks.update_arms import ARMS, Block, Framework, Plan
from pipediag.sensors.machine import describe_machine
from pipediag.session.recording import RecordedDevice, RecordedEnvironment

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
DIM = 64
BYTES = 4
LIMIT_S = 1800.0
LOOKUPS = {"layer": "Keras' Embedding", "rows": "a lookup of rows alone"}
DENSE_TEMPORARIES = 5
"""Tables beside variables that Keras' dense updates had alive at most; the row-wise ones have none,
but the layer's copy."""
MEMORY_SHARE = 0.8
"""Of what is free, that a process may take."""


@dataclass(frozen=True)
class Optimizer:
    """One of Keras', with a row-wise counterpart."""

    name: str
    slots: int
    colour: str
    arguments: dict[str, Any]
    label: str


OPTIMIZERS = (
    Optimizer("Adam", 2, "#1b6ca8", {}, "Adam"),
    Optimizer("AdamW", 2, "#7b4fa3", {}, "AdamW"),
    Optimizer("RMSprop", 1, "#2f8f5b", {}, "RMSprop"),
    Optimizer("Adagrad", 1, "#c0792a", {}, "Adagrad"),
    Optimizer("SGD", 1, "#b33a3a", {"momentum": 0.9}, "SGD, momentum"),
    Optimizer("SGD", 0, "#555555", {}, "SGD"),
)


@dataclass(frozen=True)
class Extent:
    """How much is timed."""

    sizes: tuple[int, ...]
    optimizers: tuple[Optimizer, ...]
    rounds: int
    block_s: float


FULL = Extent(SIZES, OPTIMIZERS, 8, 0.5)
BRIEF = Extent(
    (1_000, 10_000, 100_000, 1_000_000),
    tuple(one for one in OPTIMIZERS if one.label in ("Adam", "RMSprop", "Adagrad", "SGD")),
    FEWEST_ROUNDS,
    0.3,
)


@dataclass(frozen=True)
class Row:
    """One line of the table: blocks of both arms by round, milliseconds a step."""

    rows: int
    lookup: str
    optimizer: Optimizer
    ms: dict[str, list[float]]
    missing: dict[str, str]
    """Why an arm has no blocks."""

    @property
    def ratio(self) -> Ratio | None:
        """Keras' step over the row-wise one, round by round; None unless they took turns."""
        keras, lazy = (self.ms.get(arm, []) for arm in ARMS)
        if len(keras) != len(lazy) or len(keras) < 2 or self.missing:
            return None
        return summarise([ours / theirs for ours, theirs in zip(keras, lazy, strict=True)])


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--brief", is_flag=True, help="Fewer sizes, optimizers and rounds: ten minutes.")
@click.option("--rounds", type=click.IntRange(min=2))
@click.option("--block", "block_s", type=float, help="Seconds of a block.")
@click.option("--jit/--no-jit", default=False, help="Compile the step with XLA.")
@click.option("--lookup", type=click.Choice(list(LOOKUPS)), help="Only this one.")
@click.option(
    "--optimizer", "names", multiple=True, type=click.Choice([o.label for o in OPTIMIZERS])
)
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write an SVG chart.")
@click.argument("sizes", nargs=-1, type=click.IntRange(min=100))
def main(
    brief: bool,
    rounds: int | None,
    block_s: float | None,
    jit: bool,
    lookup: str | None,
    names: tuple[str, ...],
    table: Path | None,
    plot: Path | None,
    sizes: tuple[int, ...],
) -> None:
    """Time every table and print its line."""
    extent = BRIEF if brief else FULL
    chosen = [o for o in OPTIMIZERS if o.label in names] if names else extent.optimizers
    rounds, block_s = rounds or extent.rounds, block_s or extent.block_s
    machine, rows = "", []
    for size, way, optimizer in product(
        sizes or extent.sizes, [lookup] if lookup else LOOKUPS, chosen
    ):
        plan = Plan(optimizer.name, optimizer.arguments, [], size, DIM, way, rounds, block_s, jit)
        framework, row = timed(optimizer, plan)
        machine = machine or told_machine(framework)
        rows.append(row)
        click.echo(line(row))
        if table is not None:
            compiled = ", compiled by XLA" if jit else ""
            head = f"{machine}. {rounds} rounds of {block_s:g} s a block{compiled}, dim {DIM}."
            table.write_text(markdown(rows, head), encoding="utf-8")
        if plot is not None:
            plot.write_text(chart(rows), encoding="utf-8")


def timed(optimizer: Optimizer, plan: Plan) -> tuple[Framework | None, Row]:
    """Run the arms that fit, together if they can be."""
    available = psutil.virtual_memory().available * MEMORY_SHARE
    needed = {arm: bytes_needed(optimizer, plan, arm) for arm in ARMS}
    groups = [[*ARMS]] if sum(needed.values()) <= available else [[arm] for arm in ARMS]
    missing: dict[str, str] = {}
    blocks: list[Block] = []
    framework = None
    for arms in groups:
        if sum(needed[arm] for arm in arms) > available:
            missing[arms[0]] = f"needs {needed[arms[0]] / 1e9:.0f} GB"
            continue
        framework, its_blocks = run(replace(plan, arms=arms))
        blocks += its_blocks
    if len(groups) > 1:
        missing.setdefault("ratio", "not side by side")
    ms = {arm: [block.ms_per_step for block in blocks if block.arm == arm] for arm in ARMS}
    return framework, Row(plan.rows, plan.lookup, optimizer, ms, missing)


def bytes_needed(optimizer: Optimizer, plan: Plan, arm: str) -> int:
    """Tables of full size that an arm has alive at most, in bytes."""
    copies = DENSE_TEMPORARIES if arm == "keras" else int(plan.lookup == "layer")
    return (1 + optimizer.slots + copies) * plan.rows * plan.dim * BYTES


def run(plan: Plan) -> tuple[Framework, list[Block]]:
    """The blocks of a process of its own."""
    what = f"{plan.optimizer}, {plan.rows:,} rows"
    first, *others = told_by("benchmarks.update_arms", asdict(plan), what)
    return Framework(**first), [Block(**block) for block in others]


def told_by(module: str, plan: dict[str, Any], what: str) -> list[Any]:
    """The lines of JSON that a module prints for a plan, in a process of its own.

    Raises:
        click.ClickException: it failed; `what` says in which case.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps(plan)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise click.ClickException(f"{what}: {done.stderr[-800:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def told_machine(framework: Framework | None) -> str:
    """The machine in words."""
    if framework is None:
        return ""
    devices = [RecordedDevice(name=name, kind=kind) for name, kind in framework.devices]
    recorded = RecordedEnvironment(
        python=framework.python,
        executable=sys.executable,
        tensorflow=framework.tensorflow,
        keras=framework.keras,
        devices=devices,
    )
    return f"{machine_of(describe_machine(recorded))}, Keras {framework.keras}"


def line(row: Row) -> str:
    """For the terminal."""
    return (
        f"{row.rows:>10,} {row.lookup:5} {row.optimizer.label:13} "
        f"{_ms(row, 'keras'):>12} {_ms(row, 'lazy'):>12}  {_ratio(row)}"
    )


def markdown(rows: Sequence[Row], head: str) -> str:
    """A table for each way of looking up."""
    lines = [head]
    for lookup, words in LOOKUPS.items():
        if not (its_rows := [row for row in rows if row.lookup == lookup]):
            continue
        lines += ["", f"With {words}:", ""]
        lines += ["| rows | optimizer | Keras', ms a step | row-wise, ms a step | times as fast |"]
        lines += ["|---|---|---|---|---|"]
        lines += [
            f"| {row.rows:,} | {row.optimizer.label} | {_ms(row, 'keras')} | {_ms(row, 'lazy')} "
            f"| {_ratio(row)} |"
            for row in its_rows
        ]
    return "\n".join(lines) + "\n"


def chart(rows: Sequence[Row]) -> str:
    """A panel for each way of looking up; Keras' own dashed."""
    panels = [
        Panel(f"With {words}", tuple(_lines([row for row in rows if row.lookup == lookup])))
        for lookup, words in LOOKUPS.items()
        if any(row.lookup == lookup for row in rows)
    ]
    return line_chart(panels, "rows of the table", "ms a step")


def _lines(rows: Sequence[Row]) -> Iterable[Line]:
    for optimizer in OPTIMIZERS:
        for arm, words in (("keras", "Keras"), ("lazy", "row-wise")):
            points = tuple(
                (float(row.rows), float(np.median(row.ms[arm])))
                for row in rows
                if row.optimizer is optimizer and row.ms.get(arm)
            )
            if points:
                label = f"{optimizer.label}, {words}"
                yield Line(label, optimizer.colour, arm == "keras", points)


def _ms(row: Row, arm: str) -> str:
    if not row.ms.get(arm):
        return row.missing.get(arm, "-")
    return f"{np.median(row.ms[arm]):.2f}"


def _ratio(row: Row) -> str:
    ratio = row.ratio
    if ratio is None:
        return row.missing.get("ratio", "-")
    return f"{ratio.median:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


if __name__ == "__main__":
    main()
