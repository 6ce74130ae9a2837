"""The command line: a group whose commands are imported when they are called."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from pipediag import __version__
from pipediag.cli.common import say
from pipediag.descriptors import occupy_closed
from pipediag.errors import ExitStatus, PipediagError
from pipediag.interrupts import INTERRUPTED, INTERRUPTS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

COMMANDS = {
    "analyze": ("pipediag.cli.analyze", "Run a training script and find out why it is slow."),
    "show": ("pipediag.cli.show", "Print the summary of a recorded session."),
    "check": ("pipediag.cli.check", "Check sessions against limits, for CI."),
    "compare": ("pipediag.cli.compare", "Find out whether one version is slower than another."),
    "fix": ("pipediag.cli.fix", "Print or apply the confirmed edits as a patch."),
    "trace": ("pipediag.cli.trace", "Find out when the devices of a profile were idle, and why."),
    "explain": ("pipediag.cli.explain", "Explain a rule and its thresholds."),
    "doctor": ("pipediag.cli.doctor", "Find what would spoil a measurement on this machine."),
}
"""Name, module that holds a click command called `command`, and the line in the overview."""

_STDOUT, _STDERR = 1, 2

COLLECT_AFTER = 100_000
"""Threshold of garbage collection. Imports make that many objects and no garbage: with Python's own
limit of 700, collecting took a sixth of their time."""


class LazyGroup(click.Group):
    """A group that knows its commands' names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"there is no command {name!r}. {_nearest(name)}")
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _nearest(name: str) -> str:
    """Return a suggestion; Click suggests only from commands that it has imported."""
    from difflib import get_close_matches

    if name.endswith(".py"):
        return f"To analyse a script: `pipediag analyze {name}`."
    near = get_close_matches(name, COMMANDS, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"The commands are {', '.join(COMMANDS)}."


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pipediag")
def pipediag() -> None:
    """Find out why TensorFlow training is slow, from a run of your own script.

    Terminals get colours. NO_COLOR=1 and FORCE_COLOR=1 in the environment change that.
    """


def run() -> NoReturn:
    """Run `main` and exit without tearing the interpreter down, which saves a sixth of a second."""
    take_standard_streams()
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else ExitStatus.USAGE
    atexit._run_exitfuncs()
    # Standard output has been flushed, or could not be.
    with suppress(OSError, ValueError, PipediagError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> NoReturn:
    """Run the command line and exit with the status of `pipediag.errors.ExitStatus`."""
    gc.set_threshold(COLLECT_AFTER)
    try:
        status = pipediag.main(prog_name="pipediag", standalone_mode=False)
        sys.stdout.flush()
        if INTERRUPTS.came:
            status = _say("interrupted.", INTERRUPTED)
    except PipediagError as error:
        status = _say("\n".join([str(error), *getattr(error, "__notes__", [])]), error.status)
    except click.ClickException as error:
        shown = StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"))
        status = ExitStatus.USAGE
    except (click.Abort, KeyboardInterrupt) as error:
        notes = getattr(error.__cause__ or error, "__notes__", [])
        status = _say("\n".join(["interrupted.", *notes]), INTERRUPTED)
    except Exception:  # noqa: BLE001 - an unforeseen error must not end with 1, "gate failed"
        say(traceback.format_exc().rstrip("\n"))
        status = _say("this is an error in pipediag itself, please report it.", ExitStatus.USAGE)
    sys.exit(int(status or 0))


def take_standard_streams() -> None:
    """Make `sys.stdout` and `sys.stderr` streams that can always be written to, and flushed.

    They may lead nowhere, which changes no result of an analysis: a reader that has left is
    ignored. Standard output raises PipediagError if it cannot be written for another reason.
    """
    occupy_closed()
    sys.stdout = _text_stream(sys.stdout, _STDOUT)
    sys.stderr = _text_stream(sys.stderr, _STDERR)


class _Descriptor(io.FileIO):
    """Writes to a descriptor; where that fails, the data is dropped."""

    def write(self, data: ReadableBuffer) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError as error:
            # Of standard error there is nowhere to report it.
            if self.fileno() == _STDOUT and not isinstance(error, BrokenPipeError):
                raise PipediagError(
                    f"standard output cannot be written: {error.strerror}. What belongs there is "
                    "lost; files that were written before are not."
                ) from error
        return len(memoryview(data).cast("B"))


def _text_stream(given: TextIO | None, descriptor: int) -> io.TextIOWrapper:
    encoding, errors = ("utf-8", "replace") if given is None else (given.encoding, given.errors)
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(descriptor, "w", closefd=False)),
        encoding=encoding,
        errors=errors,
        line_buffering=descriptor == _STDERR or os.isatty(descriptor),
    )


def _say(message: str, status: int) -> int:
    say(f"pipediag: {message}")
    return status
