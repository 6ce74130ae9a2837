"""Runs of a script in fresh processes: `analyze --repeats`, and the runs of `compare`."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pipediag.cli.common import load_gate_config, load_sessions, say, show_results
from pipediag.errors import PipediagError
from pipediag.interrupts import INTERRUPTED, INTERRUPTS

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
        _say_medians(directory)
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


def _say_medians(directory: Path) -> None:
    from pipediag.gate.baseline import medians

    runs = [session for _, session in load_sessions([directory])]
    if len(runs) > 1:
        say(f"pipediag: {len(runs)} runs together")
        for line in medians(runs):
            say(f"  {line}")
        say(f"pipediag: `pipediag check {directory}` judges them together.")


def _judge(directory: Path, gate: Any, *, quiet: bool) -> int:
    from pipediag.gate import evaluate_runs

    runs = [session for _, session in load_sessions([directory])]
    result = evaluate_runs(runs, gate, f"{runs[0].script.path} ({len(runs)} runs)")
    if not quiet:
        show_results([result], err=True)
    return result.status.value


_MAIN = Path(__file__).absolute().parents[1] / "__main__.py"
"""Started as a file: for `-m pipediag` whatever is called so in the working directory, or before
ours in PYTHONPATH, would be run in its place."""

_LOOK_S = 0.2
"""How often is looked for signals, seconds."""


def analyze_afresh(
    arguments: list[str], *, directory: Path | None = None, stdout: int | None = None
) -> int:
    """One call of `pipediag analyze`; what it ended with, as a shell would have it.

    The interpreter gets the options that this one has, such as `-O`: they are the script's.

    Args:
        arguments: its options, the script and the script's arguments.
        directory: where it is run; None for here.
        stdout: the descriptor that is its standard output; None for ours.
    """
    from pipediag.runner.child_process import interpreter_flags

    flags = interpreter_flags(sys.orig_argv)
    command = [sys.executable, *flags, str(_MAIN), "analyze", *arguments]
    status = _watched(command, directory, stdout)
    return status if status >= 0 else 128 - status


def ended_by_somebody(output: Path) -> bool:
    """Whether a signal ended the script: it may have been measured by then, and is not wanted
    again."""
    from pipediag.session.store import load_session

    return load_session(output).script.outcome in ("interrupted", "killed")


def _watched(command: list[str], directory: Path | None, stdout: int | None) -> int:
    """Runs it; signals that others send to us alone are meant for it."""
    from pipediag.runner.signals import HeldSignals

    with (
        HeldSignals() as signals,
        subprocess.Popen(
            command,
            cwd=directory,
            stdout=stdout,
            preexec_fn=signals.prepare_child,  # noqa: PLW1509
        ) as process,
    ):
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_S)
            for number in signals.to_forward():
                process.send_signal(number)
