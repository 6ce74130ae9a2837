"""Compare projects as written, as pipediag patches them and as an expert rewrote them.

    python -m benchmarks.delivery [NAME...] [--rounds N] [--keep DIR]

Each project is a folder of a kind that users have: a package, a `train.py` and, where the data is
not made by the training, a `make_data.py`. Files of its folder `expert` take the place of others in
the expert's version. A project is analysed once, its patch is applied to a copy, and the three
versions are run natively, in turn. Nothing here is known to a test or a rule.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np

from pipediag.estimates import student_quantile

PROJECTS = Path(__file__).with_name("projects")
VERSIONS = ("written", "patched", "expert")
LIMIT_S = 900.0


@click.command()
@click.argument("names", nargs=-1)
@click.option("--rounds", default=3, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), default=Path("reports/projects"))
def main(names: tuple[str, ...], rounds: int, keep: Path) -> None:
    """Print seconds of each version, and what part of the expert's gain the patch obtains."""
    names = names or tuple(sorted(one.parent.name for one in PROJECTS.glob("*/expert")))
    gains = []
    for name in names:
        directory = keep.absolute() / name
        _prepare(PROJECTS / name, directory)
        seconds: dict[str, list[float]] = {version: [] for version in VERSIONS}
        for _ in range(rounds):
            for version in VERSIONS:
                seconds[version].append(_run([sys.executable, "train.py"], directory / version))
        gains.append({one: np.log(seconds["written"]) - np.log(seconds[one]) for one in VERSIONS})
        medians = ", ".join(f"{one} {np.median(seconds[one]):.1f} s" for one in VERSIONS)
        click.echo(
            f"{name}: {medians}; {_said(gains[-1], 'patched')}, {_said(gains[-1], 'expert')}"
        )
    patched, expert = (np.mean([one[version].mean() for one in gains]) for version in VERSIONS[1:])
    click.echo(
        f"geometric mean: patched {math.exp(patched):.2f}x, expert {math.exp(expert):.2f}x; "
        f"{100 * patched / expert:.0f} % of the expert's gain"
    )


def _prepare(project: Path, directory: Path) -> None:
    """Make the data once, analyse the project, and write its three versions."""
    shutil.rmtree(directory, ignore_errors=True)
    written = directory / "written"
    shutil.copytree(project, written, ignore=shutil.ignore_patterns("expert", "__pycache__"))
    if (written / "make_data.py").exists():
        _run([sys.executable, "make_data.py"], written)
    # The first run makes what the training itself keeps.
    _run([sys.executable, "train.py"], written)
    report = directory / "report"
    _run([sys.executable, "-m", "pipediag", "analyze", "-o", str(report), "train.py"], written)
    for version in VERSIONS[1:]:
        shutil.copytree(written, directory / version)
    patch = _output([sys.executable, "-m", "pipediag", "fix", str(report)], written)
    (directory / "fix.patch").write_text(patch, encoding="utf-8")
    if patch:
        _output(["patch", "-p1", "-s", "-i", str(directory / "fix.patch")], directory / "patched")
    shutil.copytree(project / "expert", directory / "expert", dirs_exist_ok=True)


def _run(command: list[str], directory: Path) -> float:
    began = time.perf_counter()
    _output(command, directory)
    return time.perf_counter() - began


def _output(command: list[str], directory: Path) -> str:
    """Run a command and return what it prints.

    Raises:
        ClickException: it fails, or takes longer than a project may.
    """
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise click.ClickException(f"{' '.join(command)} in {directory}: {done.stderr[-2000:]}")
    return done.stdout


def _said(gains: dict[str, np.ndarray], version: str) -> str:
    """Return the geometric mean of the speed-up with Student's interval over the rounds."""
    logs = gains[version]
    if len(logs) < 2:
        return f"{version} {math.exp(logs.mean()):.2f}x"
    error = student_quantile(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    low, high = math.exp(logs.mean() - error), math.exp(logs.mean() + error)
    return f"{version} {math.exp(logs.mean()):.2f}x [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
