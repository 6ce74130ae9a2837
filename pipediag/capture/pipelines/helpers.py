"""Functions of libraries that make a pipeline for the line that calls them.

`make_csv_dataset`, `image_dataset_from_directory`, `tfds.load` and their like are called for a
dataset, so what they make of tf.data's calls is the user's pipeline, at the user's line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePath
from types import CodeType, FrameType

from pipediag.capture.callsites import AUTOGRAPH_FILE, is_users, package_of
from pipediag.capture.packages import KERAS
from pipediag.capture.python_functions import name_of

_TENSORFLOWS = "tensorflow/python/data/experimental/ops/"
_MODULES = frozenset(
    "batching counter enumerate_ops error_ops from_list grouping interleave_ops io "
    "pad_to_cardinality parsing_ops random_ops readers resampling scan_ops shuffle_ops snapshot "
    "take_while_ops unique".split()
)
"""Those of the modules there that make a pipeline; others copy to devices or serve datasets."""
_DATASETS = "tensorflow_datasets"
_VERSION = re.compile(r"_v[12]$")


@lru_cache(maxsize=4096)
def is_helpers(filename: str) -> bool:
    """Whether functions in that file make pipelines for their callers."""
    path = PurePath(filename)
    if _TENSORFLOWS in path.as_posix():
        return path.stem in _MODULES
    if package_of(filename) == _DATASETS:
        return True
    of_keras = package_of(filename) in KERAS and path.parent.name == "utils"
    return of_keras and "dataset" in path.stem


def helper_called(frame: FrameType | None) -> str | None:
    """The function that the user's code called for the dataset that is made; None where none was.

    Args:
        frame: of what makes the call of tf.data.
    """
    name = None
    while frame is not None and not _is_the_scripts(frame.f_code.co_filename):
        if is_helpers(frame.f_code.co_filename):
            name = _called_as(frame.f_code) or name
        frame = frame.f_back
    return None if name is None else _VERSION.sub("", name)


def _called_as(code: CodeType) -> str | None:
    """What a script calls this by; None for what TensorFlow Datasets calls within itself."""
    name = name_of(code)
    if package_of(code.co_filename) != _DATASETS:
        return name.partition(".")[0]
    # Decorators stand around its public functions, and reading is left to functions within others.
    if code.co_name.startswith(("_", "<")) or "<locals>" in name:
        return None
    is_method = code.co_varnames[:1] == ("self",)
    return code.co_name if is_method else f"tfds.{code.co_name}"


def _is_the_scripts(filename: str) -> bool:
    return is_users(filename) or AUTOGRAPH_FILE in filename
