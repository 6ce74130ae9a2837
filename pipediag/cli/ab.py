"""`pipediag ab`: measure two versions of a repository by turns, and compare them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipediag.cli.analyze import POSITIVE
from pipediag.cli.compare import FORMAT_NAMES
from pipediag.cli.format_option import format_option
from pipediag.cli.gate_config import load_gate_config
from pipediag.cli.say import deliver, say
from pipediag.cli.width import fitted
from pipediag.errors import PipediagError
from pipediag.interrupts import INTERRUPTED, INTERRUPTS

if TYPE_CHECKING:
    from pipediag.cli.ab_runs import Runs
    from pipediag.comparison.interleaving import Interleaved
    from pipediag.session.model import Session

ROUNDS = 10
"""Own choice: a slow-down of a fifth is found where runs differ by 5 %, and mostly where they
differ by 10 %."""
LONGEST_S = 3600.0
"""Own choice: the longest that somebody waits for a pull request."""


@click.command(
    name="ab",
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as with `python -m`.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    default=Path("reports/ab"),
    show_default="reports/ab",
    help="Where the sessions go, into base/run-1, head/run-1 and so on.",
)
@click.option(
    "--rounds",
    type=click.IntRange(3, 100),
    default=ROUNDS,
    show_default=True,
    metavar="N",
    help="The most runs of each version.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=LONGEST_S,
    show_default="3600",
    metavar="SECONDS",
    help="The most time for all runs together.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End each run after this long; what was measured by then counts.",
)
@click.option("--steps", type=POSITIVE, metavar="N", help="Measured steps.  [default: adapts]")
@click.option(
    "--max-slowdown",
    metavar="PERCENT",
    type=click.FloatRange(min=0, max=1000, min_open=True),
    help="The smallest slow-down that counts.  [default: as configured, or else 5]",
)
@click.option("--seed", type=int, metavar="N", help="Of the order.  [default: another each time]")
@format_option(FORMAT_NAMES, "Form of the result.")
@click.option("--allow-inconclusive", is_flag=True, help="End with 0, not 4, if undecided.")
@click.option("-q", "--quiet", is_flag=True, help="Only the result and errors.")
@click.argument("base", metavar="BASE_DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument("head", metavar="HEAD_DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument(
    "script", metavar="-- SCRIPT [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Say whether SCRIPT is slower in HEAD_DIR than in BASE_DIR, from runs of both by turns.

    Each is a directory with a version of the repository; SCRIPT is a path from there, and is run
    there, in a fresh process each time. It ends as soon as the answer is certain.

    Exit status: 0 no slower, 1 slower, 2 usage, 3 the script failed before enough steps were seen,
    4 inconclusive.
    """
    from pipediag.cli.ab_runs import Runs

    script, *arguments = _script(options["script"])
    # Before anything is run: a misspelt key must not cost the runs.
    config = load_gate_config(None).override(allow_inconclusive=options["allow_inconclusive"])
    options["max_slowdown"] = options["max_slowdown"] or config.max_slowdown_percent
    options["allow_inconclusive"] = config.allow_inconclusive
    _refuse_missing(script, options)
    runs = Runs(
        directories={"base": options["base"], "head": options["head"]},
        output=_fresh(options["output"]),
        call=[*_options(options), script, "--", *arguments],
        timeout_s=options["timeout"],
        tell=_silent if options["quiet"] else say,
    )
    measured = _measure(runs, options)
    ctx.exit(_ended(measured, runs, options))


def _silent(_message: str) -> None:
    """Nobody wants to know."""


def _script(given: tuple[str, ...]) -> list[str]:
    words = list(given[1:] if given[0] == "--" else given)
    if not words or words[0].startswith("-"):
        raise PipediagError(
            "SCRIPT is missing after BASE_DIR and HEAD_DIR. Nothing was run. Options for pipediag "
            "come before BASE_DIR: `pipediag ab --rounds 5 BASE_DIR HEAD_DIR -- train.py`."
        )
    return words


def _refuse_missing(script: str, options: dict[str, Any]) -> None:
    """Before the other version is measured: it may take minutes."""
    for directory in (options["base"], options["head"]):
        if not directory.is_dir():
            raise PipediagError(
                f"{directory} is no directory. Nothing was run. Name one with a version of the "
                "repository, such as `git worktree add` makes."
            )
        if not options["module"] and not (directory / script).exists():
            raise PipediagError(
                f"{directory} holds no {script}. Nothing was run. SCRIPT is a path from either "
                "directory, and has to be in both."
            )


def _fresh(output: Path) -> Path:
    """Runs of an earlier call would be taken for runs of this one."""
    from pipediag.cli.ab_runs import UNFINISHED

    for place in (output / name for name in ("base", "head", UNFINISHED)):
        if place.exists():
            raise PipediagError(
                f"{place} is there already, and what is in it would be taken for runs of this "
                "call. Nothing was run. Remove it, or choose another directory with -o."
            )
    return output


def _options(options: dict[str, Any]) -> list[str]:
    """What `analyze` is given."""
    given = ["--quiet", "--fold-log", "--budget", "0"]
    if options["module"]:
        given.append("-m")
    if options["steps"] is not None:
        given += ["--steps", str(options["steps"])]
    return given


def _measure(runs: Runs, options: dict[str, Any]) -> Interleaved[Session]:
    from random import Random

    from pipediag.runner.signals import held_back

    INTERRUPTS.finish_first()
    with held_back():
        from pipediag.comparison import compare
        from pipediag.comparison.interleaving import Limits, interleave

    limits = Limits(options["rounds"], options["seconds"])
    judged = partial(
        compare,
        labels=(str(options["base"]), str(options["head"])),
        floor_percent=options["max_slowdown"],
    )
    return interleave(
        runs,
        lambda base, head, share: judged(base, head, error_share=share),
        limits,
        Random(options["seed"]),
    )


def _ended(measured: Interleaved[Session], runs: Runs, options: dict[str, Any]) -> int:
    """Prints what came of it; the status to end with."""
    from pipediag.cli.folded_log import say_where_folded
    from pipediag.comparison.formats import render
    from pipediag.errors import ExitStatus

    if not options["quiet"]:
        say(f"pipediag: {_WHY[measured.end].format(rounds=measured.rounds)}")
        if measured.rounds:
            both = " ".join(str(runs.output / side) for side in ("base", "head"))
            say(f"pipediag: the sessions are kept; `pipediag compare {both}` reads them again.")
        say_where_folded(runs.output)
    if measured.end == "failed":
        return runs.status
    if measured.comparison is not None:
        text = render(options["format_name"], measured.comparison)
        deliver(fitted(text, sys.stdout) if options["format_name"] == "text" else text)
    if measured.end == "interrupted":
        return runs.status or INTERRUPTED
    status = ExitStatus.INCONCLUSIVE
    if measured.comparison is not None:
        status = measured.comparison.status
    allowed = options["allow_inconclusive"] and status is ExitStatus.INCONCLUSIVE
    return 0 if allowed else status.value


_WHY = {
    "decided": "decided after {rounds} rounds.",
    "rounds": "not decided after {rounds} rounds, the most that --rounds allows.",
    "seconds": "the time that --seconds gives was up after {rounds} rounds.",
    "undecidable": "given up after {rounds} rounds: what is judged is not measured in either run.",
    "interrupted": "interrupted after {rounds} rounds.",
    "failed": "a run failed after {rounds} rounds, so nothing is compared.",
}
