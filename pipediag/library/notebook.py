"""`%load_ext pipediag`: the cell magic `%%pipediag`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from pipediag.capture.callsites import call_site
from pipediag.capture.link import how_it_ended
from pipediag.library.cells import cell_number, tell
from pipediag.library.result import Result
from pipediag.library.watch import Watch

MAGIC = "pipediag"
# Replaces the line of the magic, so that lines have the numbers that the notebook shows.
_FIRST_LINE = "# %%pipediag\n"


def load_ipython_extension(shell: Any) -> None:
    """Register the magic: called by `%load_ext pipediag`."""
    shell.register_magic_function(CellMagic(shell), magic_kind="cell", magic_name=MAGIC)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magic: called by `%unload_ext pipediag`."""
    shell.magics_manager.magics["cell"].pop(MAGIC, None)


class CellMagic:
    """Runs a cell unchanged, measures its training, and shows the result."""

    __name__ = MAGIC

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str) -> Result | None:
        """Run and measure a cell, and raise what it raises; options are `--output`, `--steps`."""
        try:
            watch = _watch(line)
        except _UsageError as refused:
            tell(f"{refused} The cell was not run.")
            return None
        watch.begin()
        if watch.is_open:
            tell("measuring this cell, which runs to its end.")
        try:
            # A magic of its own has to be the first line.
            own = cell if cell.lstrip().startswith("%%") else _FIRST_LINE + cell
            with _counted_as_the_cell(self._shell):
                ran = self._shell.run_cell(own)
        except BaseException as passing:
            watch.end(how_it_ended(passing))
            raise
        error = ran.error_before_exec or ran.error_in_exec
        if error is not None:
            watch.end(how_it_ended(error))
            _raise_again(error)
        watch.end(how_it_ended(None))
        return watch.result


@contextmanager
def _counted_as_the_cell(shell: Any) -> Iterator[None]:
    """Give the inner cell the number of the outer one; IPython 9 would give it the next."""
    site, counted = call_site(), shell.execution_count
    number = None if site is None else cell_number(shell, site.file)
    if number is not None:
        shell.execution_count = number
    try:
        yield
    finally:
        if shell.execution_count == number:
            shell.execution_count = counted


def _raise_again(error: BaseException) -> NoReturn:
    """Raise the error of the cell, whose traceback has been shown already."""

    def nothing(*_: object) -> list[str]:
        vars(error).pop("_render_traceback_", None)
        return []

    vars(error)["_render_traceback_"] = nothing
    raise error


class _UsageError(Exception):
    """A wrong option."""


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        options = " ".join(self.format_usage().split()[2:])
        raise _UsageError(f"{message}; the options are {options}.")


def _watch(line: str) -> Watch:
    options = _Options(prog="%%pipediag", add_help=False)
    options.add_argument("-o", "--output", type=Path)
    options.add_argument("--steps", type=int)
    try:
        given = options.parse_args(shlex.split(line))
        return Watch(given.output, given.steps, "cell")
    except ValueError as error:
        raise _UsageError(f"{error}") from None
