"""Which files `pipediag trace` means: those named, or the ones of a run in a log directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.trace.profile_files import RUNS, find_profiles


def profile_files(paths: Sequence[Path], run: str | None) -> list[Path]:
    """Every file that the paths mean, each once, in the order given.

    Args:
        paths: files, and directories that hold profiles or TensorBoard's logs.
        run: the run to take in each directory; without it the newest.

    Raises:
        PipediagError: a path does not exist, holds no profile, or has no run of that name.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        directory = path if run is None or not path.is_dir() else _run_directory(path, run)
        for file in find_profiles(directory):
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _run_directory(path: Path, run: str) -> Path:
    runs = [path / run, *path.glob(f"**/{RUNS}/*")]
    chosen = next((found for found in runs if found.name == run and found.is_dir()), None)
    if chosen is not None:
        return chosen
    names = sorted({found.name for found in runs[1:] if found.is_dir()})
    known = f"The runs are: {', '.join(names)}." if names else f"There is no {RUNS}/ in it."
    raise PipediagError(f"There is no run {run!r} in {path}. {known}")
