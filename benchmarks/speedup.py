"""What pipediag's confirmed edits buy, against what guides teach and the best that a search finds.

    python -m benchmarks.speedup [--budget S] [--rounds N] [--table FILE] [NAME...]

For each workload `pipediag analyze` proposes and confirms edits. Then the script trains in blocks
of a few seconds on four pipelines in turn: as written; with every parallel call at AUTOTUNE and a
prefetch at the end; with the confirmed edits; and with the subset of all proposed edits that was
best in rounds of its own, so that the best one is not chosen by the luck of the rounds that count.
Only pipelines are compared, on the same model: edits of the model are left out.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.blocks import BlockResult
from benchmarks.comparison import Ratio, summarise
from benchmarks.edit_arms import (
    MOST_EDITS,
    EditArm,
    arm_of,
    confirmed,
    guide,
    proposed,
    subsets,
)
from benchmarks.machine import machine_of
from benchmarks.samples import RunFailedError, analyze
from pipediag.session.model import Session

FOLDER = Path(__file__).with_name("workloads")
BASE = "as written"
ARMS = (BASE, "guide", "pipediag", "best found")
LIMIT_S = 3600.0


@dataclass(frozen=True)
class Workload:
    """A training script, with its arguments."""

    name: str
    script: str
    args: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.script}.py"


WORKLOADS = (
    Workload("tfdata_paper", "tfdata_paper"),
    Workload("resnet_jpeg", "resnet_jpeg"),
    Workload("translation_text", "translation_text"),
    Workload("cedar_text", "cedar_text"),
    *(Workload(f"cachew_{ms}ms", "cachew_expansion", (str(ms),)) for ms in (0, 30, 100)),
    Workload("skip_gram", "skip_gram"),
    Workload("recommender", "recommender"),
)


@dataclass
class Result:
    """One workload: rates of the arms by round, in examples a second, and what each arm is."""

    workload: str
    arms: dict[str, EditArm]
    rates: dict[str, list[float]] = field(default_factory=dict)
    """One entry a round, for arms that were not refused."""
    refused: dict[str, str] = field(default_factory=dict)
    searched: int = 0
    """Subsets that the search measured."""
    left_out: int = 0
    """Proposed edits beyond those whose subsets were searched."""

    def ratio(self, arm: str) -> Ratio | None:
        """Rate of the arm to that of the script as written, round by round."""
        if arm not in self.rates:
            return None
        pairs = zip(self.rates[arm], self.rates[BASE], strict=True)
        return summarise([rate / base for rate, base in pairs])


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--budget", default=60.0, show_default=True, help="Seconds of pipediag's trials.")
@click.option("--rounds", type=click.IntRange(min=2), default=8, show_default=True)
@click.option("--search-rounds", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--block", "block_s", default=3.0, show_default=True, help="Seconds of a block.")
@click.option("--warmup", "warmup_s", default=1.5, show_default=True, help="Seconds before it.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1, type=click.Choice([w.name for w in WORKLOADS]))
def main(
    budget: float,
    rounds: int,
    search_rounds: int,
    block_s: float,
    warmup_s: float,
    table: Path | None,
    names: tuple[str, ...],
) -> None:
    """Run the workloads and print the table."""
    results: list[Result] = []
    machine = ""
    for workload in WORKLOADS:
        if names and workload.name not in names:
            continue
        try:
            session = diagnosed(workload, budget)
            runner = Runner(workload, warmup_s, block_s)
            results.append(compare(runner, session, search_rounds, rounds))
        except RunFailedError as error:
            click.echo(f"{workload.name}: {error}", err=True)
            continue
        machine = machine_of(session.environment)
        click.echo(rows(results[-1]))
    if table is not None:
        head = f"{machine}, {rounds} rounds of {block_s:g} s a block, trials of {budget:g} s."
        table.write_text(markdown(results, head), encoding="utf-8")


def diagnosed(workload: Workload, budget_s: float) -> Session:
    """What pipediag says of the workload.

    Raises:
        RunFailedError: nothing, or of no pipeline.
    """
    with tempfile.TemporaryDirectory(prefix="pipediag-speedup-") as directory:
        session = analyze(workload.path, Path(directory), budget_s, args=workload.args)
    if session.pipeline is None or not session.pipeline.ops:
        raise RunFailedError(f"no pipeline was recorded. {session.pipeline_missing or ''}")
    return session


@dataclass(frozen=True)
class Runner:
    """Runs arms of one workload in turn, in a process of its own."""

    workload: Workload
    warmup_s: float
    block_s: float

    def run(self, arms: dict[str, EditArm], rounds: int) -> list[BlockResult]:
        """All arms in every round, in random order.

        Raises:
            RunFailedError: the process failed before it was through.
        """
        orders = [random.Random(number).sample(list(arms), len(arms)) for number in range(rounds)]
        schedule = {
            "arms": {
                name: [asdict(change) for change in arm.changes] for name, arm in arms.items()
            },
            "rounds": orders,
            "warmup_s": self.warmup_s,
            "block_s": self.block_s,
        }
        with tempfile.TemporaryDirectory(prefix="pipediag-speedup-") as directory:
            plan, results = Path(directory) / "schedule.json", Path(directory) / "results"
            plan.write_text(json.dumps(schedule), encoding="utf-8")
            command = [sys.executable, "-m", "benchmarks.blocks", str(plan), str(results)]
            done = subprocess.run(
                [*command, str(self.workload.path), *self.workload.args],
                cwd=Path(__file__).parents[1],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            if done.returncode != 0:
                raise RunFailedError(f"blocks failed: {done.stderr[-800:]}")
            lines = results.read_text(encoding="utf-8").splitlines()
        return [BlockResult(**json.loads(line)) for line in lines]


def compare(runner: Runner, session: Session, search_rounds: int, rounds: int) -> Result:
    """Search the best subset, then measure it beside the others.

    Raises:
        RunFailedError: the script could not be run in blocks.
    """
    edits = proposed(session)
    candidates = {arm.name: arm for arm in subsets(edits)}
    best = candidates[BASE]
    if len(candidates) > 1:
        searched = runner.run(candidates, search_rounds)
        best = candidates[best_arm(searched)]
    arms = {
        BASE: EditArm(BASE, ()),
        "guide": guide(session),
        "pipediag": arm_of("pipediag", confirmed(session)),
        "best found": best,
    }
    result = Result(
        runner.workload.name,
        arms,
        searched=len(candidates),
        left_out=max(0, len(edits) - MOST_EDITS),
    )
    # Arms of equal changes are one pipeline, and are measured once.
    for block in runner.run(distinct(arms), rounds):
        for name, arm in arms.items():
            if arm.changes != arms[block.arm].changes:
                continue
            if block.examples_per_s is None:
                result.refused[name] = block.refused or "refused"
            else:
                result.rates.setdefault(name, []).append(block.examples_per_s)
    return result


def best_arm(blocks: list[BlockResult]) -> str:
    """The arm with the highest median rate among those that ran."""
    rates: dict[str, list[float]] = {}
    for block in blocks:
        if block.examples_per_s is not None:
            rates.setdefault(block.arm, []).append(block.examples_per_s)
    return max(rates, key=lambda arm: float(np.median(rates[arm])))


def distinct(arms: dict[str, EditArm]) -> dict[str, EditArm]:
    """The first arm of each set of changes."""
    found: dict[str, EditArm] = {}
    for name, arm in arms.items():
        if all(arm.changes != other.changes for other in found.values()):
            found[name] = arm
    return found


def rows(result: Result) -> str:
    """The lines of one workload for the terminal."""
    lines = [f"{result.workload} ({result.searched} subsets searched)"]
    lines += [f"  {name:10} {_cell(result, name)}  {_consists_of(result, name)}" for name in ARMS]
    return "\n".join(lines)


def markdown(results: list[Result], machine: str) -> str:
    """The machine and a row a workload: rate as written, and the ratio of each arm to it."""
    head = (
        "| workload | as written, examples/s | guide | pipediag | best found | pipediag's edits |"
    )
    lines = [machine, "", head, "|" + "---|" * 6]
    for result in results:
        cells = [_cell(result, name) for name in ARMS]
        edits = ", ".join(f"`{edit}`" for edit in result.arms["pipediag"].edits) or "none"
        best = ", ".join(f"`{edit}`" for edit in result.arms["best found"].edits) or "none"
        cells[3] += f" ({best}; of {result.searched})"
        lines.append(f"| {result.workload} | " + " | ".join([*cells, edits]) + " |")
    return "\n".join(lines) + "\n"


def _cell(result: Result, name: str) -> str:
    if name in result.refused:
        return f"refused: {result.refused[name]}"
    if name == BASE:
        return f"{np.median(result.rates[BASE]):,.0f}" if BASE in result.rates else "-"
    ratio = result.ratio(name)
    return "-" if ratio is None else f"{ratio.median:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


def _consists_of(result: Result, name: str) -> str:
    return ", ".join(result.arms[name].edits)


if __name__ == "__main__":
    main()
