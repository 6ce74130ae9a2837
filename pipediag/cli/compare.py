"""`pipediag compare`: find out whether one version of a training is slower than another."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import click

from pipediag.cli.common import format_option, load_gate_config, say, show_results
from pipediag.errors import ExitStatus, PipediagError
from pipediag.interrupts import INTERRUPTED, INTERRUPTS

if TYPE_CHECKING:
    from pipediag.session.model import Session

ROUNDS = 5
"""Own choice: with five runs of each, a slow-down of a fifth is found if runs differ by 5 %."""
UNFINISHED = "unfinished"
"""Directory of a run that was cut short, so that it is not taken for a run of its version."""
_STDERR = 2
_MAIN = Path(__file__).absolute().parents[1] / "__main__.py"
"""Started as a file: with `-m pipediag`, another package of that name in the working directory or
in PYTHONPATH would be run in its place."""
_LOOK_S = 0.2
"""Interval at which signals are forwarded, seconds."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_Side = Literal["base", "head"]


@click.command(name="compare")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module, as with `python -m`.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    default=Path("reports/compare"),
    help="With SCRIPT: directory of the sessions.  [default: reports/compare]",
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
    "--results/--no-results",
    default=True,
    show_default=True,
    help="With SCRIPT: also compare the first batches and losses, in short seeded runs.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With SCRIPT: end each run after this time.",
)
@format_option
@click.option("--allow-inconclusive", is_flag=True, help="End with 0, not 4, if undecided.")
@click.argument("base", type=Path)
@click.argument("head", type=Path)
@click.argument("script", metavar="[-- SCRIPT [ARGS]...]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, base: Path, head: Path, **options: Any) -> None:
    """Find out whether HEAD is slower than BASE.

    With SCRIPT, both are directories with a version of the code. SCRIPT is a path in each; both
    versions are run alternately, each time in a fresh process.

    Without SCRIPT, each is a session.json, its directory, or a directory of the directories of
    several. Three runs of each are needed to find small changes.

    Exit status: 0 not slower, 1 slower, 2 wrong usage, input or machine, 3 a script failed too
    early, 4 inconclusive.
    """
    config = load_gate_config(None).override(allow_inconclusive=options["allow_inconclusive"])
    recorded, notes = [base, head], list[str]()
    if options["script"]:
        notes = _measure(base, head, options)
        recorded = [options["output"] / side for side in ("base", "head")]
        paths = " ".join(map(str, recorded))
        say(f"pipediag: the sessions are kept; `pipediag compare {paths}` reads them again.")
    from pipediag.gate.baseline import compare_with_baseline
    from pipediag.session.store import load_runs

    before, after = ([session for _, session in load_runs([path], tell=say)] for path in recorded)
    if options["script"]:
        allowed = config.allow_inconclusive
        status = ExitStatus.DONE if allowed else ExitStatus.INCONCLUSIVE
        _refuse_mixed(before, base, head, status)
        _refuse_mixed(after, head, base, status)
    result = compare_with_baseline(before, after, config, (str(base), str(head)))
    show_results([replace(result, notes=(*result.notes, *notes))], options["format_name"])
    ctx.exit(result.status.value)


def _measure(base: Path, head: Path, options: dict[str, Any]) -> list[str]:
    """Run both versions in turn: base, head, head, base, and so on.

    A machine that gets steadily slower meets both alike. A run that fails or is interrupted ends
    the program. Returns sentences on batches and losses.
    """
    from pipediag.runner.signals import held_back
    from pipediag.session.files import SESSION_FILE
    from pipediag.session.store import load_session

    script, *arguments = options["script"]
    _refuse(script, base, head, options)
    INTERRUPTS.finish_first()
    with held_back():
        import pipediag.runner.native_runs  # noqa: F401 - NumPy's threads would take the signals
    directories: dict[_Side, Path] = {"base": base, "head": head}
    # First, so that the files that the script writes are those of a full run in the end.
    notes = _results(directories, options) if options["results"] else []
    passed_on = ["--quiet", "--budget", "0"]
    if options["timeout"] is not None:
        passed_on += ["--timeout", str(options["timeout"])]
    passed_on += ["-m"] if options["module"] else []
    for number, side in _turns(options["rounds"]):
        into = options["output"] / side / f"run-{number}"
        say(f"pipediag: round {number} of {options['rounds']}, {side}, into {into}")
        status = INTERRUPTED
        if not INTERRUPTS.came:
            status = analyze_afresh(
                ["--output", str(into.resolve()), *passed_on, script, "--", *arguments],
                directories[side],
            )
        made = load_session(into) if (into / SESSION_FILE).exists() else None
        if status or made is None or made.script.outcome in ("interrupted", "killed"):
            if into.exists():
                into.rename(options["output"] / UNFINISHED)
            say(
                "pipediag: a run failed or was interrupted, so nothing is compared. Sessions of "
                f"whole runs are kept in {options['output']}."
            )
            raise click.exceptions.Exit(status or INTERRUPTED)
    return notes


def analyze_afresh(arguments: list[str], directory: Path) -> int:
    """Call `pipediag analyze` in a process; return its status as a shell would.

    The interpreter gets the options that this one has, such as `-O`: they are the script's. Signals
    that were sent to us alone are forwarded.
    """
    from pipediag.runner.child_process import same_interpreter
    from pipediag.runner.signals import HeldSignals

    with (
        HeldSignals() as signals,
        subprocess.Popen(
            [*same_interpreter(), str(_MAIN), "analyze", *arguments],
            cwd=directory,
            # Standard output is for the comparison alone.
            stdout=_STDERR,
            preexec_fn=signals.prepare,  # noqa: PLW1509
        ) as process,
    ):
        while True:
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(_LOOK_S)
                return status if status >= 0 else 128 - status
            for number in signals.to_forward():
                process.send_signal(number)


def _results(directories: dict[_Side, Path], options: dict[str, Any]) -> list[str]:
    """Return what the first batches and losses of both say, each run without pipediag's clocks."""
    from pipediag.runner.native_runs import TIMEOUT_S, compared, native_run
    from pipediag.session.messages import RunSettings

    say("pipediag: short seeded runs, to compare batches and losses")
    script, *arguments = options["script"]
    settings = RunSettings(script, tuple(arguments), options["module"], capture_directory="")
    with TemporaryDirectory(prefix="pipediag-compare-") as folder:
        base, head = (
            native_run(side, settings, directory, Path(folder, f"{side}.json"))
            for side, directory in directories.items()
        )
        found = compared(
            base,
            head,
            options["timeout"] or TIMEOUT_S,
            tell=lambda name, wall_s: say(f"ran {name}: {wall_s:.1f} s"),
        )
    return [one.sentence for one in found]


def _turns(rounds: int) -> Iterator[tuple[int, _Side]]:
    both: tuple[_Side, _Side] = ("base", "head")
    for number in range(1, rounds + 1):
        for side in both if number % 2 else both[::-1]:
            yield number, side


def _refuse(script: str, base: Path, head: Path, options: dict[str, Any]) -> None:
    """Check what can be checked before anything is run: a version may take minutes."""
    for directory in (base, head):
        if not directory.is_dir():
            raise PipediagError(
                f"{directory} is no directory. Nothing was run. Name one with a version of the "
                "code, such as `git worktree add` makes."
            )
        if not options["module"] and (
            Path(script).is_absolute() or not (directory / script).exists()
        ):
            raise PipediagError(
                f"{directory} holds no {script}. Nothing was run. SCRIPT is a path from either "
                "directory, and has to be in both: an absolute one is the same file for both."
            )
    # From a relative directory, one file imports the modules of either version.
    path = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if not options["module"] and not base.samefile(head) and all(map(os.path.isabs, path)):
        # Hard links may be those of a copy, of which other files were changed.
        files = {os.path.realpath(directory / script) for directory in (base, head)}
        if len(files) == 1:
            raise PipediagError(
                f"{script} is the same file for {base} and for {head}: {files.pop()}. Nothing was "
                "run. SCRIPT has to be another file in either directory, or to import the modules "
                "of each with PYTHONPATH=."
            )
    for place in (options["output"] / name for name in ("base", "head", UNFINISHED)):
        if place.exists():
            raise PipediagError(
                f"{place} is there already, and what is in it would be taken for runs of this "
                "call. Nothing was run. Remove it, or choose another directory with -o."
            )


def _refuse_mixed(sessions: Iterable[Session], own: Path, other: Path, status: ExitStatus) -> None:
    """Refuse sessions of one version that ran a file of the other one, which is imported from there
    whatever the directory."""
    mine, theirs = own.resolve(), other.resolve()
    for session in sessions:
        named = [*(loop.file for loop in session.loops), *(op.file for op in session.ops)]
        for name in filter(None, named):
            file = Path(os.path.realpath(Path(session.script.directory or "", name)))
            if file.is_relative_to(mine) or not file.is_relative_to(theirs):
                continue
            if _INSTALLED.isdisjoint(file.parts):
                raise PipediagError(
                    f"The version in {own} ran {file}, so that the two were not compared. "
                    "Is its package installed from there? Set PYTHONPATH=. or install each version "
                    "in an environment of its own.",
                    status,
                )
