"""How often trials in a real training loop say something of edits that do nothing (A/A).

    python -m benchmarks.aa_live [--rounds N] [--budget SECONDS] [SCRIPT]

Each round runs the script once and tries four edits that TensorFlow removes again, or that set what
is set already. None may be confirmed, and 1.0 should lie inside 95 of 100 intervals.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from pipediag.runner.child_connection import Ask
from pipediag.runner.child_process import supervise
from pipediag.runner.trials_of_run import ChildExecutor
from pipediag.session.edits import Change, Edit, Insert, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.messages import TrialsAwaited
from pipediag.session.model import Session
from pipediag.session.reading import read_recording
from pipediag.session.settings import RECORDING_FILE, RunSettings
from pipediag.session.trials import Trial
from pipediag.trials.schedule import run_trials

SCRIPT = Path(__file__).parents[1] / "sample_pipelines" / "pure_map.py"


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--budget", type=click.FloatRange(min=1), default=60.0, show_default=True)
@click.argument("script", type=click.Path(exists=True, path_type=Path), default=SCRIPT)
def main(rounds: int, budget: float, script: Path) -> None:
    """Run the rounds and print each trial, then the rates."""
    click.echo(f"{script.name}, {len(os.sched_getaffinity(0))} CPUs")
    tried: list[Trial] = []
    for number in range(1, rounds + 1):
        for name, trial in _tried(script, budget).items():
            click.echo(f"round {number} {name}: {_said(trial)}")
            if trial.ci95 is not None:
                tried.append(trial)
    if not tried:
        raise click.ClickException("No trial came to an interval.")
    inside = sum(trial.ci95[0] <= 1.0 <= trial.ci95[1] for trial in tried if trial.ci95)
    confirmed = sum(trial.state == "confirmed" for trial in tried)
    click.echo(f"{len(tried)} trials: 1.0 inside the interval in {inside}, confirmed {confirmed}")


def _tried(script: Path, budget_s: float) -> dict[str, Trial]:
    found: dict[str, Trial] = {}

    with tempfile.TemporaryDirectory(prefix="pipediag-aa-") as directory:

        def on_trials(waiting: TrialsAwaited, ask: Ask) -> None:
            last = _last_operation(Path(directory), waiting.loop_id)
            outcome = run_trials(
                Session.model_construct(loops=[]), _nothings(last), ChildExecutor(ask), budget_s
            )
            found.update(outcome.trials)

        supervise(
            RunSettings(str(script.resolve()), (), False, directory),
            timeout_s=None,
            on_started=lambda _pid: None,
            on_progress=lambda _event: None,
            on_trials=on_trials,
            json_mode=True,
        )
    return found


def _last_operation(directory: Path, loop_id: str) -> str:
    recording = read_recording(directory / RECORDING_FILE)
    assert recording is not None
    root = next(loop.root_op_id for loop in recording.loops if loop.id == loop_id)
    if root is None:
        raise click.ClickException("The loop reads no recorded pipeline.")
    return root


def _nothings(last: str) -> list[Finding]:
    changes: dict[str, Change] = {
        "take(-1)": Insert(last, "take", {"count": -1}),
        "skip(0)": Insert(last, "skip", {"count": 0}),
        "repeat(1)": Insert(last, "repeat", {"count": 1}),
        "deterministic": SetOptions({"deterministic": True}),
    }
    return [
        Finding(
            rule="nothing",
            title=name,
            status="fail",
            severity="info",
            advice="",
            effect_on_results="same results",
            edit=Edit(id=name, label=name, changes=(change,)),
        )
        for name, change in changes.items()
    ]


def _said(trial: Trial) -> str:
    if trial.speedup is None or trial.ci95 is None:
        return f"{trial.state}: {trial.reason}"
    low, high = trial.ci95
    return f"{trial.speedup:.3f} [{low:.3f}, {high:.3f}], {trial.state}, {trial.blocks} rounds"


if __name__ == "__main__":
    main()
