"""Compare projects as written, as pipediag patches them and as an expert rewrote them.

    python -m benchmarks.delivery [NAME...] [--rounds N] [--keep DIR] [--mirrors DIR] [--again]

Each project is a folder of a kind that users have: a package, a `train.py` and, where the data is
not made by the training, a `make_data.py`. Files of its folder `expert` take the place of others in
the expert's version. A project is analysed once, its patch is applied to a copy, and the three
versions are run natively, in turn. With --again, the copy is analysed too, and one with both
patches is one more version. Nothing here is known to a test or a rule. With mirrors, the same is
done with public scripts of public_scripts/table.toml, whose expert's version is edits too. Where
some of what the expert does is mechanical, a version with that alone is another one.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np

from benchmarks.public_scripts.scripts import (
    PublicScript,
    environment,
    expert_version,
    made,
    public_scripts,
)
from pipediag.estimates import student_quantile
from pipediag.facts.promise import gain_of_whole, promised
from pipediag.session.store import load_session

PROJECTS = Path(__file__).with_name("projects")
VERSIONS = ["written", "patched", "expert"]
MECHANICAL, AGAIN = "mechanical", "patched twice"
BY_THEIR_AUTHOR = frozenset({"charlm", "ratings", "skipgram", "towers"})
"""Projects whose expert's version is another algorithm, or another layer, and not mechanical."""
LIMIT_S = 900.0


@dataclass(frozen=True)
class _Case:
    """A project, or a public script, in three versions."""

    name: str
    script: str
    variables: Callable[[Path], Mapping[str, str]]
    """Returns the environment for the folder of a version."""
    make: Callable[[Path], object]
    """Makes the version as written, with its data, in a new folder."""
    rewrite: Callable[[Path], None]
    """Makes the expert's version of a copy of it."""
    in_part: Callable[[Path], None] | None = None
    """Makes one of what is mechanical of that, where not all is."""
    is_mechanical: bool = False
    """True if all of it is."""

    def versions(self, again: bool) -> list[str]:
        partly = [MECHANICAL] if self.in_part is not None else []
        return [*VERSIONS, *partly, *([AGAIN] if again else [])]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--rounds", default=3, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), default=Path("reports/projects"))
@click.option(
    "--mirrors",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare the public scripts that have an expert's version, from these git directories.",
)
@click.option(
    "--packages",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where `pip install --target DIR --group public-scripts` put what the scripts import.",
)
@click.option("--again", is_flag=True, help="Analyse the patched copy, too.")
def main(
    names: tuple[str, ...],
    rounds: int,
    keep: Path,
    mirrors: Path | None,
    packages: Path | None,
    again: bool,
) -> None:
    """Print seconds of each version, what was promised, and how much of the expert's gain the patch
    obtains."""
    cases = _projects(names) if mirrors is None else _scripts(names, mirrors, packages)
    gains, of_mechanical = [], []
    for case in cases:
        versions = case.versions(again)
        directory = keep.absolute() / case.name
        _prepare(case, directory, again)
        seconds: dict[str, list[float]] = {version: [] for version in versions}
        for _ in range(rounds):
            for version in versions:
                seconds[version].append(_run([case.script], directory / version, case))
        gains.append({one: np.log(seconds["written"]) - np.log(seconds[one]) for one in versions})
        best = MECHANICAL if case.in_part is not None else "expert"
        if best == MECHANICAL or case.is_mechanical:
            of_mechanical.append([gains[-1][one].mean() for one in ("patched", best)])
        medians = ", ".join(f"{one} {np.median(seconds[one]):.1f} s" for one in versions)
        obtained = ", ".join(_said(gains[-1], one) for one in versions[1:])
        promise = _promise(directory / "report", float(np.median(seconds["written"])))
        click.echo(f"{case.name}: {medians}; {obtained}; promised {promise}")
    shown = [*VERSIONS[1:], *([AGAIN] if again else [])]
    means = {one: np.mean([gain[one].mean() for gain in gains]) for one in shown}
    obtained = ", ".join(f"{one} {math.exp(mean):.2f}x" for one, mean in means.items())
    click.echo(
        f"geometric mean: {obtained}; "
        f"{100 * means['patched'] / means['expert']:.0f} % of the expert's gain"
    )
    if of_mechanical:
        patched, best = np.mean(of_mechanical, axis=0)
        click.echo(
            f"of what is mechanical, in {len(of_mechanical)}: patched {math.exp(patched):.2f}x, "
            f"expert {math.exp(best):.2f}x; {100 * patched / best:.0f} %"
        )


def _projects(names: Sequence[str]) -> Iterator[_Case]:
    for name in names or sorted(one.parent.name for one in PROJECTS.glob("*/expert")):
        yield _Case(
            name,
            "train.py",
            lambda _: os.environ,
            partial(_project, name),
            partial(_expert, name),
            is_mechanical=name not in BY_THEIR_AUTHOR,
        )


def _project(name: str, folder: Path) -> None:
    shutil.copytree(PROJECTS / name, folder, ignore=shutil.ignore_patterns("expert", "__pycache__"))
    if (folder / "make_data.py").exists():
        _output([sys.executable, "make_data.py"], folder)


def _expert(name: str, folder: Path) -> None:
    shutil.copytree(PROJECTS / name / "expert", folder, dirs_exist_ok=True)


def _scripts(names: Sequence[str], mirrors: Path, packages: Path | None) -> Iterator[_Case]:
    packages = packages and packages.absolute()
    for script in public_scripts(names):
        if script.expert:
            yield _Case(
                script.name,
                f"{script.name}.py",
                partial(environment, script, packages=packages),
                partial(made, script, mirrors.absolute()),
                partial(_rewritten, script),
                partial(_rewritten, script, mechanical=True) if script.beyond is not None else None,
            )


def _rewritten(script: PublicScript, folder: Path, *, mechanical: bool = False) -> None:
    path = folder / f"{script.name}.py"
    text = expert_version(script, path.read_text(encoding="utf-8"), mechanical=mechanical)
    path.write_text(text, encoding="utf-8")


def _prepare(case: _Case, directory: Path, again: bool) -> None:
    """Make the data once, analyse the project, and write its versions."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    written = directory / "written"
    case.make(written)
    # The first run makes what the training itself keeps.
    _run([case.script], written, case)
    patch = _patch_of(case, written, directory / "report")
    for version in case.versions(again=False)[1:]:
        shutil.copytree(written, directory / version)
    _apply(patch, directory / "patched")
    case.rewrite(directory / "expert")
    if case.in_part is not None:
        case.in_part(directory / MECHANICAL)
    if again:
        shutil.copytree(directory / "patched", directory / AGAIN)
        _apply(_patch_of(case, directory / AGAIN, directory / "report again"), directory / AGAIN)


def _patch_of(case: _Case, folder: Path, report: Path) -> Path:
    """Analyse a version, and return a file with the patch for it, which may be empty."""
    _run(["-m", "pipediag", "analyze", "-o", str(report), case.script], folder, case)
    patch = report / "fix.patch"
    text = _output([sys.executable, "-m", "pipediag", "fix", str(report)], folder)
    patch.write_text(text, encoding="utf-8")
    return patch


def _promise(report: Path, whole_s: float) -> str:
    """Return what the patch of a report promises for a run that takes `whole_s` without it."""
    session = load_session(report)
    gain = gain_of_whole(promised(session), session, whole_s)
    if gain is None:
        return "nothing"
    low, high = gain.ci95 or (gain.speedup, gain.speedup)
    return f"{gain.speedup:.2f}x [{low:.2f}, {high:.2f}]"


def _apply(patch: Path, folder: Path) -> None:
    if patch.stat().st_size:
        _output(["patch", "-p1", "-s", "-i", str(patch)], folder)


def _run(arguments: list[str], directory: Path, case: _Case) -> float:
    began = time.perf_counter()
    _output([sys.executable, *arguments], directory, case.variables(directory))
    return time.perf_counter() - began


def _output(command: list[str], directory: Path, variables: Mapping[str, str] = os.environ) -> str:
    """Run a command and return what it prints.

    Raises:
        ClickException: it fails, or takes longer than a project may.
    """
    done = subprocess.run(
        command,
        cwd=directory,
        env={**variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
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
