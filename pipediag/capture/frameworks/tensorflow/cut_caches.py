"""Caches in files that a script was filling when its process ended, without TensorFlow's clean-up.

TensorFlow deletes the files of a cache that was not completed when its iterator goes, as it does
after Ctrl-C. An iterator that is kept alive until the process is gone would leave them, and the
lock among them lets the script's next run die.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pipediag.session.recorded_operations import RecordedOperation

_OF_A_WRITER = re.compile(r"_\d+\.(lockfile|index|data-\d+-of-\d+)\S*")


def remove_cut_caches(operations: Iterable[RecordedOperation], began_s: float) -> None:
    """Remove what this process has written of caches that it did not complete.

    `began_s` is the time of day since which this process runs: older files are not its own.
    """
    for operation in operations:
        name = operation.parameters.get("filename")
        if operation.kind == "cache" and isinstance(name, str) and name:
            _remove_where_cut(name, began_s)


def _remove_where_cut(name: str, began_s: float) -> None:
    if Path(f"{name}.index").exists():
        return  # complete
    for path in glob.glob(f"{glob.escape(name)}_*"):  # noqa: PTH207 - a prefix, not a folder
        with suppress(OSError):
            if _OF_A_WRITER.fullmatch(path[len(name) :]) and Path(path).stat().st_mtime >= began_s:
                Path(path).unlink()
