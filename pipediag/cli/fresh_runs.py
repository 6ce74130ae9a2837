"""A run of a script in a fresh process of pipediag, for commands that make several."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

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
