"""What pipediag's hooks take of each step, in one process whose hooks step aside in turns.

    python -m benchmarks.hook_cost [--measured] [--steps N] [--workload NAME]... [--json]

Far less noisy than `overhead.py`, which compares processes: it decides the goal in a minute, but
leaves out what the parent does beside the script (sampling ten times a second).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.arms import STAMPS, TIMEOUT_S
from benchmarks.comparison import GOAL, Nanoseconds, Ratio, UnusableRunError, summarise
from benchmarks.toggled import ASIDE

WORKLOADS = {"eager_loop_2ms": 40_000, "keras_fit_2ms": 40_000, "eager_loop_20ms": 4_000}
"""Steps of each by default: about a minute."""

WARM_STEPS = 1000
AT_THE_SEAM = 3
"""Steps left out on either side of a turn's end: the first ones after it have cold caches."""


@dataclass(frozen=True)
class HookCost:
    """What the steps of one workload show."""

    native_ms: float
    hooks_us: float
    """Median step with hooks less median step without, over pairs of neighbouring turns."""
    ratio: Ratio


def hook_cost(stamps: Nanoseconds, aside: NDArray[np.bool_]) -> HookCost:
    """Compare each turn with the next.

    Raises:
        UnusableRunError: there are too few turns.
    """
    durations, arm = np.diff(stamps), aside[:-1]
    ends = np.flatnonzero(np.diff(arm.astype(np.int8))) + 1
    turns = [
        turn
        for turn in np.split(np.arange(len(durations)), ends)
        if turn[0] >= WARM_STEPS and len(turn) > 4 * AT_THE_SEAM
    ]
    medians = [float(np.median(durations[turn[AT_THE_SEAM:-AT_THE_SEAM]])) for turn in turns]
    pairs = [
        (one, other) if arm[turn[0]] else (other, one)
        for turn, one, other in zip(turns[::2], medians[::2], medians[1::2], strict=False)
    ]
    if len(pairs) < 10:
        raise UnusableRunError(f"only {len(pairs)} pairs of turns: give it more --steps")
    without, hooked = np.array(pairs).T
    return HookCost(
        native_ms=float(np.median(without)) / 1e6,
        hooks_us=float(np.median(hooked - without)) / 1e3,
        ratio=summarise(list(hooked / without)),
    )


def measure(workload: str, steps: int, phase: str = "measuring") -> HookCost:
    """Run it once: what is compared lies in that phase of a script that is not stopped.

    Raises:
        UnusableRunError: it failed, or is too short.
    """
    with tempfile.TemporaryDirectory(prefix="pipediag-hooks-") as directory:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.toggled", workload, str(steps), directory, phase],
            cwd=Path(__file__).parents[1],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        stamps, aside = Path(directory) / STAMPS, Path(directory) / ASIDE
        if done.returncode != 0 or not aside.exists():
            raise UnusableRunError(f"{workload} ended with {done.returncode}:\n{done.stderr}")
        return hook_cost(np.fromfile(stamps, np.int64), np.fromfile(aside, np.bool_))


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--steps", type=click.IntRange(min=2000), help="[default: about a minute of each]")
@click.option("--workload", "names", type=click.Choice(list(WORKLOADS)), multiple=True)
@click.option("--measured", is_flag=True, help="Of steps after the loop has been measured.")
@click.option("--json", "as_json", is_flag=True)
def main(steps: int | None, names: tuple[str, ...], measured: bool, as_json: bool) -> None:
    """Measure each workload and print what its hooks cost."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    phase = "measured" if measured else "measuring"
    found = {name: measure(name, steps or WORKLOADS[name], phase) for name in names or WORKLOADS}
    if as_json:
        click.echo(json.dumps({name: asdict(cost) for name, cost in found.items()}, indent=2))
        return
    click.echo(f"Step with hooks over step without; goal {GOAL} or less; 95 % interval over pairs.")
    for name, cost in found.items():
        ratio = cost.ratio
        click.echo(
            f"{name}: native step {cost.native_ms:.3f} ms, hooks {cost.hooks_us:+.0f} us, "
            f"{ratio.median:.4f} [{ratio.low:.4f}, {ratio.high:.4f}] over {ratio.rounds} pairs: "
            f"goal {ratio.judgement}"
        )


if __name__ == "__main__":
    main()
