"""Functions of libraries that make a pipeline for the line that calls them.

`make_csv_dataset`, `image_dataset_from_directory` and their like are called for a dataset, so what
they make of tf.data's calls is the user's pipeline, at the user's line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePath
from types import FrameType

from pipediag.capture.callsites import AUTOGRAPH_FILE, is_users, package_of
from pipediag.capture.packages import KERAS
from pipediag.capture.python_functions import name_of

_TENSORFLOWS = "tensorflow/python/data/experimental/ops/"
_MODULES = frozenset(
    "batching counter enumerate_ops error_ops grouping interleave_ops parsing_ops random_ops "
    "readers resampling scan_ops shuffle_ops take_while_ops unique".split()
)
"""Those of the modules there that make a pipeline; others copy to devices or serve datasets."""
_VERSION = re.compile(r"_v[12]$")


@lru_cache(maxsize=4096)
def is_helpers(filename: str) -> bool:
    """Whether functions in that file make pipelines for their callers."""
    path = PurePath(filename)
    if _TENSORFLOWS in path.as_posix():
        return path.stem in _MODULES
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
            name = name_of(frame.f_code).partition(".")[0]
        frame = frame.f_back
    return None if name is None else _VERSION.sub("", name)


def _is_the_scripts(filename: str) -> bool:
    return is_users(filename) or AUTOGRAPH_FILE in filename
