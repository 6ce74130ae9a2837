"""Which line of the user's code made a call: the innermost frame not of a library or ours."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType

KERAS = frozenset({"keras", "tf_keras"})
"""Keras, and Keras 2 as a package of its own."""

FRAMEWORKS = KERAS | {"tensorflow", "jax", "jaxlib"}
"""What a line of theirs takes is TensorFlow's, Keras's or JAX's time, not that of a user's line."""

ON_BEHALF = KERAS | frozenset(
    "keras_core keras_cv keras_hub keras_nlp keras_tuner autokeras "
    "tensorflow_addons tensorflow_datasets tensorflow_decision_forests tensorflow_hub "
    "tensorflow_io tensorflow_probability tensorflow_ranking tensorflow_recommenders "
    "tensorflow_text tensorflow_transform tf_agents torch torchvision lightning pytorch_lightning "
    "accelerate datasets transformers flax optax numpy pandas scipy sklearn "
    "alive_progress fastprogress more_itertools rich toolz tqdm "
    "IPython etils ipykernel tree wrapt".split()
)
"""They make or consume a pipeline for the line that calls them.

Not all that is installed does: a user's own package may be, and its lines are those to be told of.
"""


def package_of_module(module: str) -> str:
    """The top-level package of a module's dotted name."""
    return module.partition(".")[0]


_PIPEDIAG = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_STANDARD_LIBRARY = str(Path(threading.__file__).parent)
# AutoGraph writes the converted source of a user's function to a file with this in its name.
AUTOGRAPH_FILE = "__autograph_generated_file"
_CELL = "<ipython-input-"
"""How IPython 7 names a cell of a notebook, which is in no file."""


@dataclass(frozen=True)
class CallSite:
    """A line of user code; `by_framework` tells that Keras or the like called on its behalf."""

    file: str
    line: int
    function: str
    by_framework: bool


@lru_cache(maxsize=4096)
def package_of(filename: str) -> str | None:
    """The top-level package of an installed file, or None for code that nobody installed."""
    parts = Path(filename).parts
    for marker in ("site-packages", "dist-packages"):
        if marker in parts[:-1]:
            return parts[parts.index(marker) + 1].removesuffix(".py")
    return None if filename.startswith(_STANDARD_LIBRARY) else _installed_elsewhere(filename)


def _installed_elsewhere(filename: str) -> str | None:
    """The package of a file in a directory of its own on the path, as `pip --target` fills one."""
    path = Path(filename)
    for root in sys.path[1:]:  # the first is the script's own
        if root and filename.startswith(root) and path.is_relative_to(root):
            name = path.relative_to(root).parts[0].removesuffix(".py")
            if name in _installed_in(root):
                return name
    return None


@lru_cache(maxsize=64)
def _installed_in(root: str) -> frozenset[str]:
    """Top-level names of what an installer has put into a directory, by its records."""
    names: set[str] = set()
    try:
        for record in Path(root).glob("*.dist-info/RECORD"):
            with record.open(encoding="utf-8", errors="replace") as lines:
                paths = (line.split(",")[0] for line in lines)
                names.update(path.split("/")[0].removesuffix(".py") for path in paths)
    except OSError:
        return frozenset()
    return frozenset(names)


@lru_cache(maxsize=4096)
def is_pipediags(filename: str) -> bool:
    """Whether the file is one of pipediag's own."""
    return filename.startswith(_PIPEDIAG)


@lru_cache(maxsize=4096)
def is_users(filename: str) -> bool:
    """Whether code of that file belongs to the user, not to a library, Python or pipediag."""
    if filename.startswith(_CELL):
        return True
    if filename.startswith("<") or is_pipediags(filename) or AUTOGRAPH_FILE in filename:
        return False
    package = package_of(filename)
    if package is None:
        return not filename.startswith(_STANDARD_LIBRARY)
    return package not in FRAMEWORKS and package not in ON_BEHALF


def frames() -> Iterator[FrameType]:
    """The caller's frames, innermost first, pipediag's own left out."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_pipediags(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def call_site() -> CallSite | None:
    """The user's line on whose behalf the current call happens, or None where there is none."""
    by_framework = False
    for frame in frames():
        filename = frame.f_code.co_filename
        if is_users(filename):
            return CallSite(filename, frame.f_lineno, frame.f_code.co_name, by_framework)
        by_framework = by_framework or package_of(filename) in ON_BEHALF
    return None
