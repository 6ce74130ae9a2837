"""Names of times, sizes, parts of a run and of a step, and files in reports.

The command needs them before the script starts, so nothing here imports pydantic.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from pipediag.encoding import clipped
from pipediag.vocabulary import RunPartName, StepClass

_KIB = 1024.0
_FOUR_DIGITS = 999.5
"""Value from which on three digits would be a power of ten."""


def exact_time(ms: float) -> str:
    """Return a duration with three digits, such as `0.31 ms`, `17.7 ms`, `1.07 s`."""
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1000:.3g} s"


def length(seconds: float) -> str:
    """Return a duration with three digits that mean something: `42 s`, `16.7 min`, `2.0 h`."""
    if seconds < _FOUR_DIGITS:
        return f"{seconds:.3g} s"
    minutes = seconds / 60
    return f"{minutes:.3g} min" if minutes < _FOUR_DIGITS else f"{minutes / 60:,.1f} h"


def line_name(file: str | None, line: int | None) -> str:
    """Return `train.py:12`, or nothing where either is not known."""
    return f"{PurePath(file).name}:{line}" if file and line else ""


def place(file: str | None, line: int | None) -> str:
    """Return ` at train.py:12`, or nothing where the file is not known."""
    if not file:
        return ""
    return f" at {line_name(file, line)}" if line else f" in {PurePath(file).name}"


def memory_size(count: float) -> str:
    """Return bytes with a binary prefix, such as `700 KiB`, `42.1 MiB`, `3.25 GiB`."""
    unit, *larger = "bytes", "KiB", "MiB", "GiB", "TiB"
    while abs(count) >= _KIB and larger:
        count, unit = count / _KIB, larger.pop(0)
    return f"{count:,.0f} {unit}" if abs(count) >= _FOUR_DIGITS else f"{count:.3g} {unit}"


RUN_PART: dict[RunPartName, str] = {
    "startup": "Start-up and imports",
    "before_training": "Before training",
    "compile": "Tracing and compiling",
    "epoch_start": "Waiting for first batches",
    "steps": "Steps",
    "evaluation": "Evaluation",
    "epoch_end": "Between epochs",
    "between_loops": "Between training loops",
    "after_training": "After training, exit",
}


STEP_CLASS: dict[StepClass, str] = {
    "input_wait": "Waiting for input",
    "device_compute": "Device compute",
    "device_copy": "Device copies",
    "collective": "Collectives",
    "compile": "Compile and retrace",
    "dispatch": "Launching operations",
    "python": "Python",
    "device_wait": "Waiting for a result",
    "unattributed": "Not attributed",
}


def in_sentence(label: str) -> str:
    """Return a label as it stands within a sentence: in small letters, but for a name."""
    return label if label == "Python" else label[:1].lower() + label[1:]


REPORTS = "reports"


def default_directory(script: str, *, module: bool) -> Path:
    """Return `reports/<script stem>`, given a script's path or, with `module`, a module's name."""
    if module:
        return Path(REPORTS) / script
    try:
        return Path(REPORTS) / Path(script).resolve().stem
    except (OSError, RuntimeError, ValueError):
        # A session from elsewhere may name what is no path here: a loop of links, a NUL.
        return Path(REPORTS) / Path(script).stem


def as_typed(path: Path) -> Path:
    """Return a path as a person would type it here."""
    if not path.is_absolute():
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else Path(relative)


_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Variables of GitHub Actions and GitLab for the root: a checkout without git has no `.git`."""
_LONGEST_PATH = 4_096
"""Characters: Linux opens no file of a longer one."""


def in_checkout(file: str) -> str:
    """Return a file's path from the repository's root; files of other places stay as they are."""
    if len(file) > _LONGEST_PATH:
        return clipped(file, _LONGEST_PATH)
    here = Path.cwd()
    path = Path(os.path.normpath(here / file))
    named = {Path(root) for root in map(os.environ.get, _ROOTS) if root}
    above = (one for one in (here, *here.parents) if one in named or (one / ".git").exists())
    root = next(above, here)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file
