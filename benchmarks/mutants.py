"""How many small changes of the code the tests notice: mutation testing with mutmut.

    python -m benchmarks.mutants [--sample N] [--children N] [--table FILE] [PACKAGE...]

`[tool.mutmut]` in pyproject.toml says what is changed and which tests are asked: the quick ones
beside the packages. `--sample` tries so many changes of each package, drawn by chance, and gives
the interval of the share. A change that no test reaches counts as one that survived.

The changed copies stay in `mutants/`: `mutmut results` lists those that survived, and `mutmut show
NAME` shows one. What was killed there before is not tried again while its function stays as it is,
so a run that was cut short goes on; without the folder all begins anew.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

PACKAGES = ("facts", "gate", "trials", "measures", "rules")
COPIES = Path("mutants")
NOTICED = ("killed", "timeout", "segfault")
Z95 = 1.959964


@dataclass(frozen=True)
class Score:
    """What became of the mutants of one package."""

    package: str
    mutants: int
    outcomes: Counter[str]
    """By mutmut's words, of those that were tried."""

    @property
    def tried(self) -> int:
        return self.outcomes.total()

    @property
    def killed(self) -> int:
        return sum(self.outcomes[outcome] for outcome in NOTICED)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's, of the share killed, 95 %; None where all were tried."""
        if self.tried == self.mutants:
            return None
        share, n = self.killed / self.tried, self.tried
        middle = share + Z95**2 / (2 * n)
        reach = Z95 * math.sqrt(share * (1 - share) / n + Z95**2 / (4 * n * n))
        whole = 1 + Z95**2 / n
        return max(0.0, (middle - reach) / whole), min(1.0, (middle + reach) / whole)


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--sample", type=click.IntRange(min=1), help="Try so many of each package.")
@click.option("--seed", default=1, show_default=True, help="Of the sample.")
@click.option("--children", default=1, show_default=True, help="Mutants tried at once.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("packages", nargs=-1, type=click.Choice(PACKAGES))
def main(
    sample: int | None, seed: int, children: int, table: Path | None, packages: tuple[str, ...]
) -> None:
    """Try mutants and print the score of each package."""
    generate(children)
    draw = random.Random(seed)
    everything = {package: sorted(exit_codes(package)) for package in packages or PACKAGES}
    chosen = {
        package: draw.sample(names, sample) if sample and sample < len(names) else names
        for package, names in everything.items()
    }
    wanted = [name for package, names in chosen.items() for name in unnoticed(package, names)]
    if wanted:
        try_mutants(wanted, children)
    text = markdown(
        Score(package, len(everything[package]), Counter(outcomes(package, names).values()))
        for package, names in chosen.items()
    )
    click.echo(text)
    if table is not None:
        table.write_text(f"{datetime.now(UTC):%Y-%m-%d}\n\n{text}\n", encoding="utf-8")


def generate(children: int) -> None:
    """Write the mutants of all files, as the first stage of `mutmut run` does; it reuses them."""
    from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants

    COPIES.mkdir(exist_ok=True)
    # Names each file.
    with (COPIES / "generation.log").open("w") as log, redirect_stdout(log):
        copy_src_dir()
        copy_also_copy_files()
        create_mutants(children)


def try_mutants(names: Sequence[str], children: int) -> None:
    """Run the tests of each."""
    mutmut = Path(sys.executable).with_name("mutmut")
    command = [str(mutmut), "run", "--max-children", str(children), *names]
    # Mutmut draws its progress over and over, which nobody wants to read again.
    with (COPIES / "mutmut.log").open("w") as log:
        subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT)


def exit_codes(package: str) -> dict[str, int | None]:
    """By mutant: the status that its tests ended with, None before they have been run."""
    return {
        name: code
        for path in (COPIES / "pipediag" / package).rglob("*.meta")
        for name, code in json.loads(path.read_text("utf-8"))["exit_code_by_key"].items()
    }


def outcomes(package: str, names: Sequence[str]) -> dict[str, str]:
    """What became of each of these mutants, in mutmut's words."""
    from mutmut.stats import status_by_exit_code

    codes = exit_codes(package)
    return {name: status_by_exit_code[codes[name]] for name in names}


def unnoticed(package: str, names: Sequence[str]) -> list[str]:
    """Those that no test has noticed yet."""
    return [name for name, what in outcomes(package, names).items() if what not in NOTICED]


def markdown(scores: Iterable[Score]) -> str:
    """A row for each package."""
    rows = [
        "| package | mutants | tried | killed | survived | reached by no test | share killed |",
        "|---|---|---|---|---|---|---|",
    ]
    for score in scores:
        rest = score.tried - score.killed - score.outcomes["no tests"]
        rows.append(
            f"| `{score.package}` | {score.mutants:,} | {score.tried:,} | {score.killed:,} | "
            f"{rest:,} | {score.outcomes['no tests']:,} | {_share(score)} |"
        )
    return "\n".join(rows)


def _share(score: Score) -> str:
    share = f"{100 * score.killed / score.tried:.1f} %"
    if score.interval is None:
        return share
    low, high = score.interval
    return f"{share} [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    main()
