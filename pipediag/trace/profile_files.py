"""Which files a path means: one profile, or a run's profiles under a log directory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipediag.errors import PipediagError

_SUFFIXES = re.compile(r"(\.xplane\.pb|\.pt\.trace\.json|\.json)?(\.gz)?$")
_PATTERNS = ("*.xplane.pb", "*.pt.trace.json", "*.pt.trace.json.gz")
# PyTorch's handler for TensorBoard writes `<worker>.<time>.pt.trace.json`, a file each window.
_WINDOW = re.compile(r"(?P<worker>.+)\.(?P<time>\d{10,})$")
RUNS = "plugins/profile"
"""Where TensorBoard keeps the runs under a log directory."""


def find_profiles(path: Path) -> list[Path]:
    """The file itself, or the newest run's files under a directory, one for each host, by name.

    A run is a directory that holds profiles; it may be named itself. Of the windows that PyTorch
    wrote of one worker, the newest is taken.

    Raises PipediagError where there is none.
    """
    try:
        if not path.is_dir():
            if not path.exists():
                raise PipediagError(f"There is no profile at {path}.")
            return [path]
        runs = {run: found for run in _runs(path) if (found := _profiles(run))}
    except OSError as error:
        raise PipediagError(f"Cannot look for profiles at {path}: {error.strerror}.") from error
    if not runs:
        raise PipediagError(
            f"There is no profile in {path}: no {', '.join(_PATTERNS)} there or in {RUNS}/<run>/."
        )
    return _newest_windows(runs[max(runs, key=lambda run: (run.name, _changed(runs[run])))])


def host_of(file: Path) -> str:
    """The host that wrote the profile: the file's name without its suffixes."""
    return _worker_and_time(file)[0]


def _runs(path: Path) -> Iterator[Path]:
    """The directory itself, and every directory below it that is a run of TensorBoard's plugin."""
    yield path
    if path.name == "profile":
        yield from path.glob("*/")
    elif path.name == "plugins":
        yield from path.glob("profile/*/")
    yield from path.glob(f"**/{RUNS}/*/")


def _profiles(run: Path) -> list[Path]:
    found = {file for pattern in _PATTERNS for file in run.glob(pattern)}
    return sorted(file for file in found if file.is_file())


def _changed(files: Iterable[Path]) -> int:
    return max(file.stat().st_mtime_ns for file in files)


def _newest_windows(files: list[Path]) -> list[Path]:
    newest: dict[str, Path] = {}
    for file in sorted(files, key=_worker_and_time):
        newest[_worker_and_time(file)[0]] = file
    return sorted(newest.values())


def _worker_and_time(file: Path) -> tuple[str, int]:
    name = _SUFFIXES.sub("", file.name, count=1)
    window = _WINDOW.match(name)
    return (window["worker"], int(window["time"])) if window else (name, 0)
