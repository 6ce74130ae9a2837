"""`pipediag analyze --repeats N`: the same call again, in fresh processes one after the other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pipediag.cli.fresh_runs import analyze_afresh, ended_by_somebody
from pipediag.cli.gate_config import load_gate_config
from pipediag.cli.say import deliver, say
from pipediag.cli.width import fitted
from pipediag.errors import PipediagError
from pipediag.interrupts import INTERRUPTED, INTERRUPTS

if TYPE_CHECKING:
    from pipediag.errors import ExitStatus

_OURS = frozenset({"repeats", "output", "fail_on"})
"""Options that are about all runs together: a single run is not given them."""


def repeat(ctx: click.Context, options: dict[str, Any]) -> int:
    """Runs the script so often, each into `run-N` of the output directory; the status to end with.

    The first run that does not end with 0 ends it. At the end all of them are told together, and
    with `--fail-on` the gate judges them so.

    Raises:
        PipediagError: the directory holds sessions already, or an option is about one run only.
    """
    if options["json_mode"]:
        raise PipediagError(
            "--json prints one session, and --repeats makes several. The script was not run. "
            "Leave one of the two out; the sessions are in the output directory."
        )
    gate = None
    if options["fail_on"]:
        # Before the script is run: a misspelt key must not cost a whole run.
        gate = load_gate_config(None).override(fail_on=options["fail_on"])
    directory = _fresh_directory(options)
    INTERRUPTS.finish_first()
    for number in range(1, options["repeats"] + 1):
        output = directory / f"run-{number}"
        if not options["quiet"]:
            say(f"pipediag: run {number} of {options['repeats']}, into {output}")
        arguments = [*_given(ctx), "--output", str(output), options["script"], *options["args"]]
        status = analyze_afresh(arguments)
        if status or INTERRUPTS.came or ended_by_somebody(output):
            return status or INTERRUPTED
    if not options["quiet"]:
        _tell(directory)
    return 0 if gate is None else _judge(directory, gate, quiet=options["quiet"])


def _fresh_directory(options: dict[str, Any]) -> Path:
    """Return the directory of all runs, in which runs of an earlier call would count as this one's.

    With --force their sessions are removed.
    """
    from pipediag.facts.names import default_directory
    from pipediag.session.files import SESSION_FILE

    directory: Path = options["output"] or default_directory(
        options["script"], module=options["module"]
    )
    earlier = [directory / SESSION_FILE, *directory.glob(f"run-*/{SESSION_FILE}")]
    earlier = [session for session in earlier if session.exists()]
    if earlier and not options["force"]:
        raise PipediagError(
            f"{directory} holds sessions of an earlier call, which would be taken for runs of this "
            "one. The script was not run. Write over them with --force, or choose another "
            "directory with -o."
        )
    for session in earlier:
        _remove(session)
    return directory


def _remove(session: Path) -> None:
    try:
        session.unlink()
    except OSError as error:
        raise PipediagError(
            f"cannot remove {session} of an earlier call: {error.strerror}. The script was not "
            "run. Remove it, or choose another directory with -o."
        ) from error


def _given(ctx: click.Context) -> list[str]:
    """The options as they were given, less those that are about all runs."""
    given: list[str] = []
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if (
            not isinstance(parameter, click.Option)
            or name in _OURS
            or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        ):
            continue
        given.append(parameter.opts[-1])
        if not parameter.is_flag:
            given.append(str(ctx.params[name]))
    return given


def _tell(directory: Path) -> None:
    from pipediag.comparison.repeats import medians
    from pipediag.session.repeats import load_runs

    runs = [session for _, session in load_runs([directory], tell=say)]
    if len(runs) < 2:
        return
    say(f"pipediag: {len(runs)} runs together")
    for line in medians(runs):
        say(f"  {line}")
    say(
        f"pipediag: `pipediag check {directory}` judges them as one; `pipediag compare` takes them."
    )


def _judge(directory: Path, gate: Any, *, quiet: bool) -> int:
    from pipediag.gate import evaluate_runs
    from pipediag.gate.formats import render
    from pipediag.session.repeats import load_runs

    runs = [session for _, session in load_runs([directory], tell=say)]
    result = evaluate_runs(runs, gate, f"{runs[0].script.path} ({len(runs)} runs)")
    if not quiet:
        deliver(fitted(render("text", [result]), sys.stderr), err=True)
    status: ExitStatus = result.status
    return status.value
