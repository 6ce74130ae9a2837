"""Runs of a script in fresh processes: `analyze --repeats`, and the runs of `compare`."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pipediag.cli.common import load_sessions, say, show_results
from pipediag.errors import PipediagError
from pipediag.interrupts import INTERRUPTED, INTERRUPTS

if TYPE_CHECKING:
    from pipediag.gate.config import GateConfig

_OURS = frozenset({"repeats", "output", "fail_on"})
"""Options that are about all runs together, and not passed on to each."""


def repeat(ctx: click.Context, options: dict[str, Any], gate: GateConfig | None) -> int:
    """Run the script several times, each into `run-N` of the output directory; return the status.

    The first run that does not end with 0 ends it. At the end the medians are printed, and the gate
    judges all runs together.

    Raises:
        PipediagError: the directory holds sessions already, or an option is about one run only.
    """
    if options["json_mode"]:
        raise PipediagError(
            "--json prints one session, and --repeats makes several. The script was not run. "
            "Leave one of the two out; the sessions are in the output directory."
        )
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
    runs = [session for _, session in load_sessions([directory])]
    if not options["quiet"]:
        from pipediag.gate.evaluation import figures

        found = figures(runs)
        known = [
            f"{name} {found[key]:.3g} {unit}"
            for name, key, unit in (("step", "step_ms", "ms"), ("run", "run_s", "s"))
            if found[key] is not None
        ]
        medians = f"medians: {', '.join(known)}" if known else "no step was measured"
        say(f"pipediag: {len(runs)} runs together; {medians}")
        say(f"pipediag: `pipediag check {directory}` judges them together.")
    if gate is None:
        return 0
    from pipediag.gate.evaluation import evaluate_runs

    result = evaluate_runs(runs, gate, f"{runs[0].script.path} ({len(runs)} runs)")
    if not options["quiet"]:
        show_results([result], err=True)
    return result.status.value


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
        try:
            session.unlink()
        except OSError as error:
            raise PipediagError(
                f"cannot remove {session} of an earlier call: {error.strerror}. The script was not "
                "run. Remove it, or choose another directory with -o."
            ) from error
    return directory


def _given(ctx: click.Context) -> list[str]:
    """Return the options as they were given, without those that are about all runs."""
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


_MAIN = Path(__file__).absolute().parents[1] / "__main__.py"
"""Started as a file: with `-m pipediag`, another package of that name in the working directory or
in PYTHONPATH would be run in its place."""

_LOOK_S = 0.2
"""Interval at which signals are forwarded, seconds."""


def analyze_afresh(
    arguments: list[str], *, directory: Path | None = None, stdout: int | None = None
) -> int:
    """Call `pipediag analyze` in a process; return its status as a shell would.

    The interpreter gets the options that this one has, such as `-O`: they are the script's.
    """
    from pipediag.runner.child_process import same_interpreter

    command = [*same_interpreter(), str(_MAIN), "analyze", *arguments]
    status = _watched(command, directory, stdout)
    return status if status >= 0 else 128 - status


def ended_by_somebody(output: Path) -> bool:
    """Return True if a signal ended the script, so that it is not to be run again."""
    from pipediag.session.store import load_session

    return load_session(output).script.outcome in ("interrupted", "killed")


def _watched(command: list[str], directory: Path | None, stdout: int | None) -> int:
    """Run it, and forward signals that were sent to us alone."""
    from pipediag.runner.signals import HeldSignals

    with (
        HeldSignals() as signals,
        subprocess.Popen(
            command,
            cwd=directory,
            stdout=stdout,
            preexec_fn=signals.prepare,  # noqa: PLW1509
        ) as process,
    ):
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_S)
            for number in signals.to_forward():
                process.send_signal(number)
