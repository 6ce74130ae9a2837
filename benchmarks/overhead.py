"""What watching costs: each workload bare, under capture, and as `analyze` runs it, in turn.

    python benchmarks/overhead.py [--rounds N] [--workload NAME]... [--json]

The scripts note when each step begins, by the same code in all arms. Compared are the steps of
pipediag's baseline window with the bare run's steps at the same positions. The arms of a round are
alive together and take turns of a quarter of a second, so that whatever else the machine does slows
all of them alike. The few steps that hold a pause do not move a median.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.arms import ARMS, TIMEOUT_S, Workload, bare_stamps, watched_steps
from benchmarks.comparison import (
    GOAL,
    BaselineSteps,
    Nanoseconds,
    UnusableRunError,
    agreement,
    step_time_ratio,
    summarise,
)
from benchmarks.turns import take_turns

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("keras_fit_2ms", warmup=600, baseline=3000),
        Workload("eager_loop_2ms", warmup=600, baseline=3000),
        Workload("eager_loop_20ms", warmup=40, baseline=150),
        Workload("input_bound", warmup=200, baseline=400),
    )
}


@dataclass
class Rounds:
    """What the rounds of one workload gave, one entry a round."""

    bare_ms: list[float] = field(default_factory=list)
    capture_ratio: list[float] = field(default_factory=list)
    analyze_ratio: list[float] = field(default_factory=list)
    agreement: list[float] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Why rounds that failed are missing from the lists above."""

    def add(self, bare: Nanoseconds, captured: BaselineSteps, sampled: BaselineSteps) -> None:
        """Enter one round. Raises UnusableRunError."""
        ratios = step_time_ratio(bare, captured), step_time_ratio(bare, sampled)
        self.bare_ms.append(float(np.median(np.diff(bare)[captured.positions])) / 1e6)
        self.capture_ratio.append(ratios[0])
        self.analyze_ratio.append(ratios[1])
        self.agreement.append(agreement(captured))


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option(
    "--workload",
    "names",
    type=click.Choice(list(WORKLOADS)),
    multiple=True,
    help="May be given several times.  [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Print every round as JSON at the end.")
def main(rounds: int, names: tuple[str, ...], as_json: bool) -> None:
    """Run the rounds, telling of each on standard error, and print the ratios."""
    # The same for all arms, whose standard error is ours.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    before = machine()
    say(before)
    results = {name: measure(WORKLOADS[name], rounds) for name in names or WORKLOADS}
    after = f"load when it ended: {load()}"
    if as_json:
        click.echo(json.dumps(report(results, [before, after]), indent=2))
    else:
        click.echo(f"{before}; {after}")
        click.echo(table(results))


def measure(workload: Workload, rounds: int) -> Rounds:
    """All rounds of one workload; ends the program where none is usable."""
    result = Rounds()
    for number in range(rounds):
        try:
            result.add(*one_round(workload))
        except (UnusableRunError, TimeoutError) as error:
            result.left_out.append(str(error))
            say(f"{workload.name} round {number + 1}/{rounds} is left out: {error}")
            continue
        say(
            f"{workload.name} round {number + 1}/{rounds}: bare {result.bare_ms[-1]:.3f} ms, "
            f"capture x{result.capture_ratio[-1]:.4f}, analyze x{result.analyze_ratio[-1]:.4f}"
        )
    if not result.bare_ms:
        raise click.ClickException(f"no round of {workload.name} is usable")
    return result


def one_round(workload: Workload) -> tuple[Nanoseconds, BaselineSteps, BaselineSteps]:
    """All arms, in turns.

    Raises:
        UnusableRunError: an arm failed.
        TimeoutError: an arm did not end.
    """
    with tempfile.TemporaryDirectory(prefix="pipediag-overhead-") as scratch:
        directories = {arm: Path(scratch) / arm for arm in ARMS}
        processes = [_start(arm, workload, directory) for arm, directory in directories.items()]
        take_turns(processes, timeout_s=TIMEOUT_S)
        for arm, process in zip(ARMS, processes, strict=True):
            if process.returncode != 0:
                said = (directories[arm] / "stderr").read_text(errors="replace")
                raise UnusableRunError(f"{arm} ended with status {process.returncode}:\n{said}")
        return (
            bare_stamps(directories["bare"]),
            watched_steps(directories["capture"]),
            watched_steps(directories["analyze"]),
        )


def _start(arm: str, workload: Workload, directory: Path) -> psutil.Popen:
    directory.mkdir()
    windows = str(workload.warmup), str(workload.baseline)
    command = [sys.executable, "-m", "benchmarks.arms", arm, workload.name, *windows]
    with (directory / "stderr").open("wb") as said:
        return psutil.Popen(
            [*command, str(directory)], cwd=Path(__file__).parents[1], stdout=said, stderr=said
        )


def table(results: dict[str, Rounds]) -> str:
    """The ratios of all workloads, a line each for capture and for analyze."""
    lines = [
        f"Step time in the baseline window over bare step time; goal {GOAL} or less.",
        "Median over rounds of the ratio of medians, 95 % bootstrap interval over rounds.",
    ]
    for name, rounds in results.items():
        left_out = f", {len(rounds.left_out)} left out" if rounds.left_out else ""
        lines.append(
            f"{name}: bare step {np.median(rounds.bare_ms):.3f} ms, "
            f"{len(rounds.bare_ms)} rounds{left_out}"
        )
        for arm, ratios in (("capture", rounds.capture_ratio), ("analyze", rounds.analyze_ratio)):
            ratio = summarise(ratios)
            lines.append(
                f"  {arm:8} {ratio.median:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]  "
                f"goal {ratio.judgement}"
            )
        lines.append(
            f"  pipediag's step over the script's own clock: {np.median(rounds.agreement):.4f}"
        )
    return "\n".join(lines)


def report(results: dict[str, Rounds], lines: list[str]) -> dict[str, Any]:
    """Everything, for other programs."""
    return {
        "machine": lines,
        "goal": GOAL,
        "workloads": {
            name: {
                "rounds": asdict(rounds),
                "capture": asdict(summarise(rounds.capture_ratio)),
                "analyze": asdict(summarise(rounds.analyze_ratio)),
                "agreement": float(np.median(rounds.agreement)),
            }
            for name, rounds in results.items()
        },
    }


def machine() -> str:
    """The machine and how busy it is before we begin."""
    return (
        f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, "
        f"Python {platform.python_version()}, load when it began: {load()}"
    )


def load() -> str:
    """Processes that wanted to run, over the last 1, 5 and 15 minutes."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def say(line: str) -> None:
    """Progress goes to standard error; standard output holds the result alone."""
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
