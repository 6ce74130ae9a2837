"""`pipediag compare`: is one version of a training slower than another."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pipediag.cli.format_option import format_option
from pipediag.cli.gate_config import load_gate_config
from pipediag.cli.say import deliver, say
from pipediag.cli.width import fitted
from pipediag.errors import ExitStatus, PipediagError
from pipediag.interrupts import INTERRUPTED, INTERRUPTS

if TYPE_CHECKING:
    from pipediag.comparison.result import Comparison
    from pipediag.session.model import Session

_FORMATS = Path(__file__).parents[1] / "comparison" / "formats"
# By their files: importing them would make `--help` wait for all that a comparison needs.
FORMAT_NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules([str(_FORMATS)])))

ROUNDS = 5
"""Own choice: with five runs of each, a slow-down of a fifth is found where runs differ by 5 %."""
UNFINISHED = "unfinished"
"""Folder of a run that was cut short, so that it is not taken for one of its side."""
_STDERR = 2
_Side = Literal["base", "head"]


@click.command(name="compare")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as with `python -m`.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    default=Path("reports/compare"),
    show_default="reports/compare",
    help="With SCRIPT: where the sessions go, into base/run-1, head/run-1 and so on.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=ROUNDS,
    show_default=True,
    metavar="N",
    help="With SCRIPT: runs of each version.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With SCRIPT: end each run after this long; what was measured by then counts.",
)
@click.option(
    "--ratios-only",
    is_flag=True,
    help="Compare shares of the step and of the run alone, which carry over to other machines.",
)
@click.option(
    "--max-slowdown",
    metavar="PERCENT",
    type=click.FloatRange(min=0, max=1000, min_open=True),
    help="The smallest slow-down that counts.  [default: as configured, or else 5; 25 between "
    "single runs]",
)
@format_option(FORMAT_NAMES, "Form of the result.")
@click.option("--allow-inconclusive", is_flag=True, help="End with 0, not 4, if undecided.")
@click.argument("base", type=Path)
@click.argument("head", type=Path)
@click.argument("script", metavar="[-- SCRIPT [ARGS]...]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, base: Path, head: Path, **options: Any) -> None:
    """Say whether HEAD is slower than BASE, and what grew.

    With SCRIPT, BASE and HEAD are directories with two versions of the code. SCRIPT is a path from
    there and is run there, in a fresh process each time, both versions alternating.

    Without it, each is a session.json, the directory that holds it, or a directory of runs as
    `analyze --repeats` makes it.

    With three runs of each, differences from run to run are told from what the change did.
    `max-slowdown-percent` and `allow-inconclusive` in [tool.pipediag] hold here, too.

    Exit status: 0 no slower, 1 slower, 2 usage, unreadable input or another machine, 3 a script
    failed before enough steps were seen, 4 inconclusive.
    """
    config = load_gate_config(None).override(allow_inconclusive=options["allow_inconclusive"])
    runs = _Runs()
    if options["script"]:
        runs = _measured(base, head, options)
        if runs.status and not runs.interrupted:
            ctx.exit(runs.status)
    else:
        runs.sessions = {"base": _load(base), "head": _load(head)}
    status: int = runs.status
    if all(runs.sessions.values()):
        comparison = _compared(runs, (str(base), str(head)), options, config.max_slowdown_percent)
        text = _rendered(comparison, options["format_name"])
        deliver(fitted(text, sys.stdout) if options["format_name"] == "text" else text)
        allowed = config.allow_inconclusive and comparison.status is ExitStatus.INCONCLUSIVE
        status = status or (0 if allowed else comparison.status.value)
    ctx.exit(status)


@dataclass
class _Runs:
    sessions: dict[_Side, list[Session]] = field(default_factory=lambda: {"base": [], "head": []})
    status: int = 0
    """What a run that failed or was interrupted ended with."""
    interrupted: bool = False


def _load(path: Path) -> list[Session]:
    from pipediag.session.repeats import load_runs

    return [session for _, session in load_runs((path,), tell=say)]


def _compared(
    runs: _Runs, labels: tuple[str, str], options: dict[str, Any], configured: float | None
) -> Comparison:
    from pipediag.comparison import compare

    return compare(
        runs.sessions["base"],
        runs.sessions["head"],
        labels=labels,
        ratios_only=options["ratios_only"],
        floor_percent=options["max_slowdown"] or configured,
    )


def _rendered(comparison: Comparison, form: str) -> str:
    from pipediag.comparison.formats import render

    return render(form, comparison)


def _measured(base: Path, head: Path, options: dict[str, Any]) -> _Runs:
    """Run both versions in turn: base, head, head, base, and so on.

    A machine that gets steadily slower meets both alike. An interrupt ends it, and what was
    measured by then is compared.
    """
    from pipediag.cli.fresh_runs import analyze_afresh
    from pipediag.runner.signals import held_back
    from pipediag.session.files import SESSION_FILE
    from pipediag.session.repeats import without_rows
    from pipediag.session.store import load_session

    script, *arguments = options["script"]
    _refuse(script, base, head, options)
    INTERRUPTS.finish_first()
    with held_back():
        import pipediag.comparison  # noqa: F401 - an interrupt while it loads would end in it
    directories: dict[_Side, Path] = {"base": base, "head": head}
    runs = _Runs()
    for number, side in _turns(options["rounds"]):
        into = options["output"] / side / f"run-{number}"
        say(f"pipediag: round {number} of {options['rounds']}, {side}, into {into}")
        status = INTERRUPTED
        if not INTERRUPTS.came:
            # Standard output is for the comparison alone.
            status = analyze_afresh(
                [*_analyze_options(into, options), script, "--", *arguments],
                directory=directories[side],
                stdout=_STDERR,
            )
        made = load_session(into) if (into / SESSION_FILE).exists() else None
        if made is None or made.script.outcome in ("interrupted", "killed"):
            runs.status = status
            runs.interrupted = made is not None or status in (INTERRUPTED, *range(128, 256))
            if into.exists():
                into.rename(options["output"] / UNFINISHED)
        elif status:
            runs.status = status
        else:
            runs.sessions[side].append(without_rows(made))
            continue
        break
    _say_end(runs, options["output"])
    return runs


def _turns(rounds: int) -> Iterator[tuple[int, _Side]]:
    both: tuple[_Side, _Side] = ("base", "head")
    for number in range(1, rounds + 1):
        for side in both if number % 2 else both[::-1]:
            yield number, side


def _say_end(runs: _Runs, output: Path) -> None:
    if runs.status and not runs.interrupted:
        say("pipediag: a run failed, so nothing is compared.")
    elif runs.interrupted:
        say("pipediag: interrupted; what was measured is compared.")
    if all(runs.sessions.values()):
        both = " ".join(str(output / side) for side in ("base", "head"))
        say(f"pipediag: the sessions are kept; `pipediag compare {both}` reads them again.")


def _refuse(script: str, base: Path, head: Path, options: dict[str, Any]) -> None:
    """Check what can be checked before anything is run: a version may take minutes."""
    for directory in (base, head):
        if not directory.is_dir():
            raise PipediagError(
                f"{directory} is no directory. Nothing was run. Name one with a version of the "
                "code, such as `git worktree add` makes."
            )
        if not options["module"] and not (directory / script).exists():
            raise PipediagError(
                f"{directory} holds no {script}. Nothing was run. SCRIPT is a path from either "
                "directory, and has to be in both."
            )
    for place in (options["output"] / name for name in ("base", "head", UNFINISHED)):
        if place.exists():
            raise PipediagError(
                f"{place} is there already, and what is in it would be taken for runs of this "
                "call. Nothing was run. Remove it, or choose another directory with -o."
            )


def _analyze_options(into: Path, options: dict[str, Any]) -> list[str]:
    given = ["--output", str(into.resolve()), "--quiet", "--budget", "0"]
    if options["timeout"] is not None:
        given += ["--timeout", str(options["timeout"])]
    return [*given, "-m"] if options["module"] else given
