"""What pipediag's hooks take of each step, in one process whose hooks are switched off and on.

    python -m benchmarks.hook_cost [--steps N] [--workload NAME]...

What the parent does beside the script, sampling ten times a second, is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.toggled import OFF, STAMPS
from pipediag.estimates import interval, resampled_medians

GOAL = 1.02
"""The ratio of step times that pipediag sets itself as a limit."""
WORKLOADS: dict[str, tuple[int, Sequence[str]]] = {
    "eager_loop_2ms": (40_000, ("eager_loop", "256", "416")),
    "keras_fit_2ms": (40_000, ("keras_fit",)),
    "eager_loop_20ms": (4_000, ("eager_loop", "768", "512")),
}
"""Steps, about a minute of each, and the script with its arguments."""
TIMEOUT_S = 600.0
WARM_STEPS = 1000
AT_THE_SWITCH = 3
"""Steps left out on either side of a switch: the first ones after it have cold caches."""


@dataclass(frozen=True)
class HookCost:
    """The difference that the hooks make, over pairs of neighbouring stretches."""

    native_ms: float
    hooks_us: float
    """Median step with hooks less median step without."""
    ratio: float
    ci95: tuple[float, float]
    """The interval of the ratio, over pairs."""
    pairs: int

    @property
    def judgement(self) -> str:
        """Return how the interval lies to the goal: met, missed or undecided."""
        if self.ci95[1] <= GOAL:
            return "met"
        return "missed" if self.ci95[0] > GOAL else "undecided"


def hook_cost(stamps: NDArray[np.int64], off: NDArray[np.bool_]) -> HookCost:
    """Compare each stretch of steps with the next; `off`: steps without hooks.

    Raises:
        click.ClickException: there are too few stretches.
    """
    durations, off = np.diff(stamps), off[:-1]
    switches = np.flatnonzero(np.diff(off.astype(np.int8))) + 1
    stretches = [
        steps
        for steps in np.split(np.arange(len(durations)), switches)
        if steps[0] >= WARM_STEPS and len(steps) > 4 * AT_THE_SWITCH
    ]
    medians = [float(np.median(durations[s[AT_THE_SWITCH:-AT_THE_SWITCH]])) for s in stretches]
    pairs = [
        (one, other) if off[steps[0]] else (other, one)
        for steps, one, other in zip(stretches[::2], medians[::2], medians[1::2], strict=False)
    ]
    if len(pairs) < 10:
        raise click.ClickException(f"only {len(pairs)} pairs to compare: give it more --steps")
    without, hooked = np.array(pairs).T
    ratios = list(hooked / without)
    return HookCost(
        native_ms=float(np.median(without)) / 1e6,
        hooks_us=float(np.median(hooked - without)) / 1e3,
        ratio=float(np.median(ratios)),
        ci95=interval(resampled_medians(ratios)),
        pairs=len(pairs),
    )


def measure(workload: str, steps: int | None) -> HookCost:
    """Run a workload once and compare its steps while they are measured.

    Raises:
        click.ClickException: it failed, or is too short.
    """
    usual, (script, *args) = WORKLOADS[workload]
    words = [script, str(steps or usual), *args]
    with tempfile.TemporaryDirectory(prefix="pipediag-hooks-") as directory:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.toggled", directory, *words],
            cwd=Path(__file__).parents[1],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        stamps, off = Path(directory) / STAMPS, Path(directory) / OFF
        if done.returncode != 0 or not off.exists():
            raise click.ClickException(f"{workload} ended with {done.returncode}:\n{done.stderr}")
        return hook_cost(np.fromfile(stamps, np.int64), np.fromfile(off, np.bool_))


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--steps", type=click.IntRange(min=2000), help="[default: about a minute of each]")
@click.option("--workload", "names", type=click.Choice(list(WORKLOADS)), multiple=True)
def main(steps: int | None, names: tuple[str, ...]) -> None:
    """Measure each workload and print what its hooks cost."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    click.echo(f"Step with hooks over step without; goal {GOAL} or less; 95 % interval over pairs.")
    for name in names or WORKLOADS:
        cost = measure(name, steps)
        low, high = cost.ci95
        click.echo(
            f"{name}: native step {cost.native_ms:.3f} ms, hooks {cost.hooks_us:+.0f} us, "
            f"{cost.ratio:.4f} [{low:.4f}, {high:.4f}] over {cost.pairs} pairs: "
            f"goal {cost.judgement}"
        )


if __name__ == "__main__":
    main()
