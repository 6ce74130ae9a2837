"""Notebooks: the cell magic `%%pipediag`, and cells, whose source is in no file."""

from __future__ import annotations

import json
import linecache
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pipediag.capture.callsites import call_site
from pipediag.capture.link import how_it_ended
from pipediag.encoding import one_line

if TYPE_CHECKING:
    from pipediag.library.result import Result

MAGIC = "pipediag"
# Replaces the line of the magic, so that lines have the numbers that the notebook shows.
_FIRST_LINE = "# %%pipediag\n"


def load_ipython_extension(shell: Any) -> None:
    """Register the magic: called by `%load_ext pipediag`."""
    shell.register_magic_function(CellMagic(shell), magic_kind="cell", magic_name=MAGIC)


class CellMagic:
    """Runs a cell unchanged, measures its training, and shows the result."""

    __name__ = MAGIC

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str) -> Result | None:
        """Run and measure a cell, and raise what it raises; the line is a directory, or empty."""
        from pipediag.library.watch import Watch

        if line.strip().startswith("-"):
            tell("%%pipediag takes the directory of the report, no options. The cell was not run.")
            return None
        watch = Watch(Path(line.strip()) if line.strip() else None, None, "cell")
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


CELLS_FILE = "cells.json"
_NUMBERED = re.compile(r"ipython-input-(\d+)-")
"""Names of cells in IPython 7 and in Colab."""


class Cell(NamedTuple):
    """A cell that was run."""

    label: str
    """`cell In[3]`."""
    source: str


Cells = dict[str, Cell]


def cells_of_notebook() -> Cells:
    """Return the cells of this notebook by the names of their code in tracebacks."""
    shell = ipython_shell()
    if shell is None:
        return {}
    found: Cells = {}
    for name, entry in list(linecache.cache.items()):
        number = cell_number(shell, name)
        # Other entries say how to load the lines, of a file or of a package.
        if number is not None and len(entry) == 4:
            found[name] = Cell(f"cell In[{number}]", "".join(entry[2]))
    return found


def ipython_shell() -> Any:
    """Return the shell if this program is a notebook's kernel or an IPython shell, else None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def cell_number(shell: Any, name: str) -> int | None:
    """Return the number of the cell with this name in tracebacks; None if it is no cell."""
    named = _NUMBERED.search(name)
    if named is not None:
        return int(named.group(1))
    known = getattr(shell.compile, "_filename_map", {}).get(name)
    return known if isinstance(known, int) else None


def write_cells(directory: Path) -> None:
    """Write the cells for the companion, if there are any."""
    cells = cells_of_notebook()
    if cells:
        (directory / CELLS_FILE).write_text(json.dumps(cells), encoding="utf-8")


def read_cells(directory: Path) -> Cells:
    """Read the cells that the program wrote."""
    file = directory / CELLS_FILE
    if not file.exists():
        return {}
    return {name: Cell(*cell) for name, cell in json.loads(file.read_text("utf-8")).items()}


def tell(sentence: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"{one_line(f'pipediag: {sentence}')}\n")
    sys.stderr.flush()
