"""The peak memory that `pipediag plan-memory` predicts, against that of a native process.

    python -m benchmarks.memory_plan [--table FILE] [OPTIMIZERS...]

A process builds the model and trains five steps, three times over, as the peak is not the same in
each; another does it with tables of a hundred rows, which tells what TensorFlow itself takes, and
is subtracted. The plan is made of a run of its own. A process takes up to 2.5 GB.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

SCRIPT = Path(__file__).with_name("embedding_memory.py")
STEPS_NATIVE, STEPS_PLANNED = 5, 100_000
LIMIT_S = 300.0
NATIVE_RUNS = 3
_FEW_ROWS = 100


@dataclass(frozen=True)
class Shape:
    """A model with tables of so many rows and dimensions."""

    optimizer: str
    tables: tuple[tuple[int, int], ...]

    def arguments(self) -> list[str]:
        return [self.optimizer, *(f"{rows}x{dim}" for rows, dim in self.tables)]

    def with_few_rows(self) -> Shape:
        return Shape(self.optimizer, tuple((_FEW_ROWS, dim) for _, dim in self.tables))


SHAPES = (
    Shape("sgd", ((1_500_000, 64),)),
    Shape("adam", ((1_000_000, 64),)),
    Shape("adam", ((600_000, 64), (600_000, 64))),
    Shape("LazyAdam", ((1_000_000, 64),)),
    Shape("adagrad", ((2_000_000, 32),)),
    Shape("rmsprop", ((800_000, 64), (600_000, 32), (1_000_000, 16))),
)


def measured_bytes(shape: Shape, runs: int) -> list[int]:
    """What the tables of so many native processes took at their peak, the least first.

    Raises:
        RuntimeError: a process failed.
    """
    without = _peak(shape.with_few_rows())
    return sorted(_peak(shape) - without for _ in range(runs))


def _peak(shape: Shape) -> int:
    out = _run([str(SCRIPT), str(STEPS_NATIVE), *shape.arguments()])
    return int(out.rsplit("peak ", 1)[1])


def predicted_bytes(shape: Shape) -> int:
    """What the plan says of it.

    Raises:
        RuntimeError: the plan could not be made.
    """
    command = ["-m", "pipediag", "plan-memory", "--json", str(SCRIPT), str(STEPS_PLANNED)]
    return int(json.loads(_run([*command, *shape.arguments()]))["peak_bytes"])


def _run(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{arguments} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def row(shape: Shape) -> str:
    """A line of the table."""
    predicted, measured = predicted_bytes(shape), measured_bytes(shape, NATIVE_RUNS)
    tables = ", ".join(f"{rows:,} x {dim}" for rows, dim in shape.tables)
    found = ", ".join(f"{one / 2**20:,.0f}" for one in measured)
    off = 100.0 * (predicted / statistics.median(measured) - 1.0)
    return f"| {shape.optimizer} | {tables} | {predicted / 2**20:,.0f} | {found} | {off:+.1f} % |"


@click.command()
@click.option("--table", type=click.Path(path_type=Path), help="Write the table here, too.")
@click.argument("optimizers", nargs=-1, type=click.Choice([one.optimizer for one in SHAPES]))
def main(table: Path | None, optimizers: tuple[str, ...]) -> None:
    """Predict and measure each shape, or those of these optimizers."""
    lines = [
        "| optimizer | tables | predicted MiB | measured MiB | off the median |",
        "|---|---|---:|---:|---:|",
    ]
    click.echo("\n".join(lines))
    for shape in SHAPES:
        if optimizers and shape.optimizer not in optimizers:
            continue
        lines.append(row(shape))
        click.echo(lines[-1])
    if table is not None:
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
