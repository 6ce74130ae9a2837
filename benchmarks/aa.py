"""How often a trial confirms an edit that does nothing, and how often one that does something.

    python -m benchmarks.aa [--trials N] [--budget SECONDS]
    python -m benchmarks.aa --live [--rounds N] [--budget SECONDS] [SCRIPT]

The schedule itself runs, with an executor that is simulated: its blocks scatter by models of shared
machines, on a clock that only they move. `truth inside` is the share of trials whose interval
contains the true speed-up; its own error, from 400 trials, is about 1 point.

With `--live` a script really runs, and four edits are tried that TensorFlow removes again, or that
set what is set already. None may be confirmed, and 1.0 should lie inside 95 of 100 intervals.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import click

from pipediag.runner.child_connection import Ask
from pipediag.runner.child_process import supervise
from pipediag.runner.trials_of_run import ChildExecutor
from pipediag.session.edits import Change, Edit, Insert, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.messages import (
    RECORDING_FILE,
    BlockRun,
    Prepared,
    RunBlock,
    RunSettings,
    TrialsAwaited,
)
from pipediag.session.store import read_recording
from pipediag.session.trials import Trial
from pipediag.trials import Variant
from pipediag.trials.bench import Bench, TakenBy
from pipediag.trials.candidates import candidates
from pipediag.trials.contest import Contest
from pipediag.trials.schedule import run_trials
from pipediag.vocabulary import BASE
from tests.factories import make_finding

STEP_S = 0.002
BATCH = 32
WARMUP_S = 0.2
SPREADS = (0.03, 0.1)
SPEEDUPS = (1.0, 1.03, 1.1, 1.5)
SCRIPT = Path(__file__).parents[1] / "sample_pipelines" / "pure_map.py"
Levels = Iterator[float]
"""Endless log throughputs of blocks that follow each other, around any constant."""


def even(draw: random.Random, spread: float) -> Levels:
    """Yield independent normal levels."""
    while True:
        yield draw.gauss(0.0, spread)


def heavy_tailed(draw: random.Random, spread: float) -> Levels:
    """Yield levels by Student's t with three degrees of freedom, of that standard deviation."""
    while True:
        chi_squared = 2.0 * draw.gammavariate(1.5, 1.0)
        student = draw.gauss(0.0, 1.0) / math.sqrt(chi_squared / 3.0)
        yield student * spread / math.sqrt(3.0)


def spiky(draw: random.Random, spread: float) -> Levels:
    """Yield levels of which one in ten is slowed down by something else on the machine."""
    while True:
        hit = draw.random() < 0.1
        slowdown = draw.expovariate(1.0 / (3.0 * spread)) if hit else 0.0
        yield draw.gauss(0.0, spread / 2.0) - slowdown


def sluggish(draw: random.Random, spread: float) -> Levels:
    """Yield levels like their neighbours: an autoregression with a coefficient of 0.7."""
    level = draw.gauss(0.0, spread)
    while True:
        yield level
        level = 0.7 * level + math.sqrt(1.0 - 0.7**2) * draw.gauss(0.0, spread)


def in_phases(draw: random.Random, spread: float) -> Levels:
    """Yield levels of a machine with slow phases of some six blocks."""
    slow = draw.random() < 0.5
    while True:
        slow ^= draw.random() < 0.15
        yield draw.gauss(0.0, spread / 2.0) - 3.0 * spread * slow


def drifting(draw: random.Random, spread: float) -> Levels:
    """Yield levels of a machine that takes 1.5 times as long after every hundred blocks."""
    level = 0.0
    while True:
        yield level + draw.gauss(0.0, spread)
        level -= math.log(1.5) / 100


MODELS: dict[str, Callable[[random.Random, float], Levels]] = {
    "even": even,
    "heavy-tailed": heavy_tailed,
    "spiky": spiky,
    "sluggish": sluggish,
    "in phases": in_phases,
    "drifting": drifting,
}


class SimulatedExecutor:
    """Blocks whose throughput scatters; every variant but the base is `speedup` times as fast."""

    def __init__(self, levels: Levels, speedup: float) -> None:
        self.now = 0.0
        self._speedup = speedup
        self._levels = levels

    def clock(self) -> float:
        """Return the seconds since the start."""
        return self.now

    def prepare(self, variant: Variant) -> Prepared:
        """Build nothing."""
        return Prepared(variant.name)

    def run(self, command: RunBlock) -> BlockRun:
        """Return a block of that many seconds."""
        step_s = STEP_S * math.exp(-next(self._levels))
        if command.variant != BASE:
            step_s /= self._speedup
        batches = max(5, round(command.seconds / step_s))
        self.now += WARMUP_S + batches * step_s
        return BlockRun(command.variant, batches, batches * BATCH, round(batches * step_s * 1e9))


def simulated(
    noise: str, spread: float, speedup: float, *, trials: int, edits: int, budget_s: float
) -> list[Trial]:
    """Return the measured ones of at least so many trials, by the schedule's own rules."""
    found: list[Trial] = []
    for seed in range(math.ceil(trials / edits)):
        executor = SimulatedExecutor(MODELS[noise](random.Random(seed), spread), speedup)
        bench = Bench(
            executor,
            TakenBy(),
            budget_s,
            executor.clock,
            lambda _event: None,
            executor.clock(),
        )
        contest = Contest(bench)
        changes = {f"edit-{n}": SetParameters(f"op{n}", {}) for n in range(edits)}
        contest.enter(candidates([_finding(name, change) for name, change in changes.items()]))
        bench.prepare_base()
        while contest.step():
            pass
        found += contest.trials.values()
    return [trial for trial in found if trial.ci95 is not None]


def percent_inside(trials: list[Trial], speedup: float) -> float:
    """Return the share of intervals that contain the speed-up, in percent."""
    inside = [trial.ci95[0] <= speedup <= trial.ci95[1] for trial in trials if trial.ci95]
    return 100.0 * sum(inside) / len(inside)


def _finding(name: str, change: Change) -> Finding:
    return make_finding(rule=name, edit=Edit(name, name, (change,)))


def _row(noise: str, spread: float, speedup: float, trials: list[Trial]) -> str:
    states = Counter(trial.state for trial in trials)
    counts = (states[state] for state in ("confirmed", "refuted", "inconclusive"))
    percents = [*(100.0 * one / len(trials) for one in counts), percent_inside(trials, speedup)]
    rounds = sum(trial.blocks or 0 for trial in trials) / len(trials)
    shares = [f"{one:.1f} %" for one in percents]
    cells = [noise, f"{100 * spread:g} %", f"{speedup:g}", len(trials), *shares]
    return f"| {' | '.join(map(str, cells))} | {rounds:.1f} |"


def tried_live(script: Path, budget_s: float) -> dict[str, Trial]:
    """Run the script once, and try edits in it that do nothing."""
    found: dict[str, Trial] = {}
    with tempfile.TemporaryDirectory(prefix="pipediag-aa-") as directory:

        def on_trials(waiting: TrialsAwaited, ask: Ask) -> None:
            recording = read_recording(Path(directory) / RECORDING_FILE)
            assert recording is not None
            loop = next(one for one in recording.loops if one.id == waiting.loop_id)
            last = loop.root_op_id
            if last is None:
                raise click.ClickException("The loop reads no recorded pipeline.")
            nothings: dict[str, Change] = {
                "take(-1)": Insert(last, "take", {"count": -1}),
                "skip(0)": Insert(last, "skip", {"count": 0}),
                "repeat(1)": Insert(last, "repeat", {"count": 1}),
                "deterministic": SetOptions({"deterministic": True}),
            }
            findings = [_finding(name, change) for name, change in nothings.items()]
            found.update(run_trials(loop, findings, ChildExecutor(ask), budget_s).trials)

        supervise(
            RunSettings(str(script.resolve()), (), False, directory),
            timeout_s=None,
            on_started=lambda _pid: None,
            on_progress=lambda _event: None,
            on_trials=on_trials,
            json_mode=True,
        )
    return found


def live(script: Path, rounds: int, budget_s: float) -> None:
    """Print the trials of all rounds, then how many were confirmed."""
    click.echo(f"{script.name}, {len(os.sched_getaffinity(0))} CPUs")
    measured: list[Trial] = []
    for number in range(1, rounds + 1):
        for name, trial in tried_live(script, budget_s).items():
            said = f"{trial.state}: {trial.reason}"
            if trial.speedup is not None and trial.ci95 is not None:
                measured.append(trial)
                low, high = trial.ci95
                said = f"{trial.speedup:.3f} [{low:.3f}, {high:.3f}], {trial.state}"
            click.echo(f"round {number} {name}: {said}, {trial.blocks} blocks")
    if not measured:
        raise click.ClickException("No trial came to an interval.")
    confirmed = sum(trial.state == "confirmed" for trial in measured)
    inside = f"1.0 inside {percent_inside(measured, 1.0):.0f} % of intervals"
    click.echo(f"{len(measured)} trials: {inside}, confirmed {confirmed}")


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--trials", default=400, show_default=True, help="Of each line of the table.")
@click.option("--budget", type=click.FloatRange(min=1), default=60.0, show_default=True)
@click.option("--live", "is_live", is_flag=True, help="Try edits in a script that really runs.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Of it.")
@click.argument("script", type=click.Path(exists=True, path_type=Path), default=SCRIPT)
def main(trials: int, budget: float, is_live: bool, rounds: int, script: Path) -> None:
    """Print the table, or the trials in the script."""
    if is_live:
        live(script, rounds, budget)
        return
    head = "noise|per block|true speed-up|trials|confirmed|refuted|inconclusive|truth inside|rounds"
    click.echo(f"|{head}|\n{'|---' * 9}|")
    for speedup, noise, spread in product(SPEEDUPS, MODELS, SPREADS):
        found = simulated(noise, spread, speedup, trials=trials, edits=2, budget_s=budget)
        click.echo(_row(noise, spread, speedup, found))


if __name__ == "__main__":
    main()
