"""Cells of a notebook: the names of their places, and their source, which is in no file."""

from __future__ import annotations

import json
import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipediag.encoding.text import one_line

CELLS_FILE = "cells.json"
_NUMBERED = re.compile(r"ipython-input-(\d+)-")
"""Names of cells in IPython 7 and in Colab."""


@dataclass(frozen=True)
class Cell:
    """A cell that was run."""

    label: str
    """`cell In[3]`."""
    source: str


Cells = dict[str, Cell]


def in_notebook() -> bool:
    """Return True if this program is a notebook's kernel or an IPython shell."""
    return _shell() is not None


def cells_of_notebook() -> Cells:
    """Return the cells of this notebook by the names of their code in tracebacks."""
    shell = _shell()
    if shell is None:
        return {}
    found: Cells = {}
    for name, entry in list(linecache.cache.items()):
        number = cell_number(shell, name)
        # Other entries say how to load the lines, of a file or of a package.
        if number is not None and len(entry) == 4:
            found[name] = Cell(f"cell In[{number}]", "".join(entry[2]))
    return found


def when_cell_ends(call: Callable[[], None]) -> None:
    """Have this called once after the running cell; do nothing outside a notebook."""
    shell = _shell()
    if shell is None:
        return

    def ended(*_: object) -> None:
        shell.events.unregister("post_run_cell", ended)
        call()

    shell.events.register("post_run_cell", ended)


def _shell() -> Any:
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
        plain = {name: asdict(cell) for name, cell in cells.items()}
        (directory / CELLS_FILE).write_text(json.dumps(plain), encoding="utf-8")


def read_cells(directory: Path) -> Cells:
    """Read the cells that the program wrote."""
    file = directory / CELLS_FILE
    if not file.exists():
        return {}
    plain = json.loads(file.read_text(encoding="utf-8"))
    return {name: Cell(**fields) for name, fields in plain.items()}


def tell(sentence: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"{one_line(f'pipediag: {sentence}')}\n")
    sys.stderr.flush()
