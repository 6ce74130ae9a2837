"""`pipediag check`: check recorded sessions against limits and a baseline."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from pipediag.cli.common import format_option, load_gate_config, say, show_results
from pipediag.errors import PipediagError

if TYPE_CHECKING:
    from pipediag.session.model import Session

Runs = list[tuple[Path, "Session"]]


@click.command(name="check")
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True, type=Path)
@click.option(
    "--config",
    "config_path",
    metavar="PYPROJECT",
    type=Path,
    help="Read [tool.pipediag] from this file.  [default: the nearest pyproject.toml]",
)
@click.option(
    "--baseline",
    metavar="SESSION",
    type=Path,
    multiple=True,
    help="Also fail if the sessions are slower than these.",
)
@format_option
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=Path,
    help="Write the result to FILE in that format, and print it as text.",
)
@click.option("--allow-inconclusive", is_flag=True, help="End with 0, not 4, if undecided.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    sessions: tuple[Path, ...],
    config_path: Path | None,
    baseline: tuple[Path, ...],
    format_name: str,
    output: Path | None,
    allow_inconclusive: bool,
) -> None:
    """Check recorded sessions against the limits in [tool.pipediag].

    SESSION is a session.json, its directory, or a directory of the directories of several. Of
    several runs of one script, that with the median step is judged; of several scripts, or workers
    of a job, the worst decides.

    Exit status: 0 passed, 1 failed, 2 wrong usage or input, 3 a script failed too early, 4
    inconclusive.
    """
    from pipediag.comparison.quantities import run_in_the_middle
    from pipediag.facts.script import script_failure
    from pipediag.gate.baseline import compare_with_baseline
    from pipediag.gate.evaluation import evaluate
    from pipediag.gate.result import worst_status
    from pipediag.session.store import load_runs

    config = load_gate_config(config_path).override(allow_inconclusive=allow_inconclusive)
    scripts = _by_script(load_runs(sessions, tell=say), of_one=bool(baseline))
    if baseline and len(scripts) > 1:
        raise PipediagError(
            "--baseline is of one script, and the sessions are of several, with other arguments, "
            "or of several workers. Nothing was checked. Check the sessions of each with a "
            "baseline of its own."
        )
    results = []
    for runs in scripts:
        of_script = [session for _, session in runs]
        failed = next(filter(script_failure, of_script), None)
        judged = failed or run_in_the_middle(of_script)
        results.append(evaluate(judged, config, _label(runs, len(scripts))))
    if baseline:
        before = load_runs(baseline, tell=say)
        base, head = ([one for _, one in runs] for runs in (before, scripts[0]))
        labels = (str(baseline[0]), str(sessions[0]))
        results.append(compare_with_baseline(base, head, config, labels))
    # Printed first, so that it is seen even if the file can't be written.
    show_results(results, "text" if output else format_name)
    if output is not None:
        from pipediag.gate.result import render

        _write(output, render(format_name, results))
    ctx.exit(worst_status(results).value)


def _by_script(loaded: Runs, *, of_one: bool) -> list[Runs]:
    """Return the runs of each script, of a job those of each worker.

    Scripts that are alike in name alone may differ in all else, and the run in the middle of theirs
    would hide the others: runs in several directories are of one script where their loops stand in
    one place. Where all are of one, as a baseline is, checkouts may differ.
    """
    scripts: dict[object, Runs] = {}
    for path, session in loaded:
        script, worker = session.script, session.environment.worker
        name = PurePath(script.path).name if of_one and not script.module else script.path
        which = (name, script.module, worker and worker.name, *script.args)
        scripts.setdefault(which, []).append((path, session))
    found: list[Runs] = []
    for runs in scripts.values():
        alike = len({_loop(session) for _, session in runs} - {None}) <= 1
        parted: dict[str | None, Runs] = {}
        for path, session in runs:
            where = None if of_one or alike else session.script.directory
            parted.setdefault(where, []).append((path, session))
        found += parted.values()
    return found


def _loop(session: Session) -> tuple[Path, int | None] | None:
    """Return file and line of the diagnosed loop, as they are in the script's directory."""
    loop, folder = session.diagnosed_loop(), Path(session.script.directory or "")
    if loop is None or loop.file is None:
        return None
    file = folder / loop.file
    return file.relative_to(folder) if file.is_relative_to(folder) else file, loop.line


def _label(runs: Runs, scripts: int) -> str | None:
    """Return the label of a script's runs; None if the script's name is enough."""
    if len(runs) > 1:
        return f"{runs[0][1].script.path} ({len(runs)} runs)"
    return str(runs[0][0]) if scripts > 1 else None


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all; a link (/dev/stdout is one), a pipe or a device stays."""
    from pipediag.session.files import why_not_written, write_text

    if not path.is_symlink() and (path.is_file() or not path.exists()):
        write_text(path, text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PipediagError(why_not_written(path, error)) from error
