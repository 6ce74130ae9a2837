"""How often a trial says something of an edit that does nothing, and how often of one that does.

The schedule itself runs, with an executor that is simulated: its blocks scatter as `noise.py`
says, on a clock that only they move. `truth inside` is the share
of trials whose interval holds the true speed-up where they ended, wherever that was. Its own
error, from 400 trials, is about 1 point.

    python -m benchmarks.aa [--trials N] [--edits N] [--budget SECONDS] [--speedup X] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from benchmarks.noise import MODELS, Scatter
from pipediag.session.edits import Edit, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.trials import Trial
from pipediag.trials.bench import Bench, TakenBy
from pipediag.trials.candidates import candidates
from pipediag.trials.contest import Contest
from pipediag.trials.executor import Block, Preparation, Variant

STEP_S = 0.002
BATCH = 32
WARMUP_S = 0.2
SPREADS = (0.03, 0.1)
SPEEDUPS = (1.0, 1.03, 1.1, 1.5)


class SimulatedExecutor:
    """Blocks whose throughput scatters; every variant but the base is `speedup` times as fast."""

    def __init__(self, scatter: Scatter, speedup: float, seed: int) -> None:
        self.now = 0.0
        self._speedup = speedup
        self._levels: Iterator[float] = scatter(random.Random(seed))

    def clock(self) -> float:
        """Seconds since the start."""
        return self.now

    def prepare(self, variant: Variant) -> Preparation:
        """Nothing to build."""
        del variant
        return Preparation([])

    def block(self, variant: Variant, seconds: float) -> Block:
        """A block of that many seconds."""
        step_s = STEP_S * math.exp(-next(self._levels))
        if variant.changes:
            step_s /= self._speedup
        batches = max(5, round(seconds / step_s))
        self.now += WARMUP_S + batches * step_s
        return Block(batches * BATCH, batches, round(batches * step_s * 1e9))

    def pull(self, variant: Variant, seconds: float) -> Block:
        """The same as a block."""
        return self.block(variant, seconds)


@dataclass(frozen=True)
class Row:
    """Many trials under one model of noise."""

    noise: str
    spread_percent: float
    speedup: float
    trials: int
    confirmed_percent: float
    refuted_percent: float
    inconclusive_percent: float
    truth_inside_percent: float
    mean_rounds: float


def _edit(number: int) -> Finding:
    edit = Edit(f"edit-{number}", f"edit {number}", (SetParameters(f"op{number}", {}),))
    return Finding(rule=edit.id, title="", status="fail", severity="warn", advice="", edit=edit)


def run_once(executor: SimulatedExecutor, edits: int, budget_s: float, seed: int) -> list[Trial]:
    """The contest of so many edits against base, with the schedule's own rules."""
    bench = Bench(executor, TakenBy(), budget_s, executor.clock, lambda _event: None, seed)
    contest = Contest(bench)
    contest.enter(candidates([_edit(number) for number in range(edits)]))
    bench.prepare_base()
    while contest.step():
        pass
    return list(contest.trials.values())


def rates(
    noise: str, spread: float, speedup: float, *, trials: int, edits: int, budget_s: float
) -> Row:
    """Run that many edits in all, and count what the trials said."""
    found: list[Trial] = []
    for seed in range(math.ceil(trials / edits)):
        executor = SimulatedExecutor(MODELS[noise](spread), speedup, seed)
        found += run_once(executor, edits, budget_s, seed)
    measured = [trial for trial in found if trial.ci95 is not None]
    states = Counter(trial.state for trial in measured)
    inside = sum(
        trial.ci95[0] <= speedup <= trial.ci95[1] for trial in measured if trial.ci95 is not None
    )

    def percent(count: int) -> float:
        return round(100.0 * count / len(measured), 1)

    return Row(
        noise=noise,
        spread_percent=100.0 * spread,
        speedup=speedup,
        trials=len(measured),
        confirmed_percent=percent(states["confirmed"]),
        refuted_percent=percent(states["refuted"]),
        inconclusive_percent=percent(states["inconclusive"]),
        truth_inside_percent=percent(inside),
        mean_rounds=round(sum(trial.blocks or 0 for trial in measured) / len(measured), 1),
    )


def _markdown(rows: list[Row]) -> str:
    lines = [
        "| noise | per block | true speed-up | trials | confirmed | refuted | inconclusive "
        "| truth inside | rounds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.noise} | {row.spread_percent:g} % | {row.speedup:g} | {row.trials} "
        f"| {row.confirmed_percent:g} % | {row.refuted_percent:g} % "
        f"| {row.inconclusive_percent:g} % | {row.truth_inside_percent:g} % "
        f"| {row.mean_rounds:g} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=400, help="per line of the table")
    parser.add_argument("--edits", type=int, default=2, help="alive beside base")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds, simulated")
    parser.add_argument("--speedup", type=float, action="append", help="true; may be repeated")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [
        rates(noise, spread, speedup, trials=given.trials, edits=given.edits, budget_s=given.budget)
        for speedup in given.speedup or SPEEDUPS
        for noise in MODELS
        for spread in SPREADS
    ]
    print(json.dumps([asdict(row) for row in rows], indent=1) if given.json else _markdown(rows))


if __name__ == "__main__":
    main()
