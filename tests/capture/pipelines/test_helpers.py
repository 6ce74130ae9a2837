"""Whose function makes a pipeline for the line that calls it, by the frames of the call."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from pipediag.capture.pipelines.plan_recorder import helper_called, is_helpers

SITE = "/opt/python/lib/python3.11/site-packages"
TFDS = f"{SITE}/tensorflow_datasets/core"
EXPERIMENTAL = f"{SITE}/tensorflow/python/data/experimental/ops"

LOADING = """
def load(call):
    return DatasetBuilder().as_dataset(call)

class DatasetBuilder:
    def as_dataset(self, call):
        return self._build_single_dataset(call)

    def _build_single_dataset(self, call):
        def parse(call):
            return call()
        return parse(call)
"""
LOGGED = """
class _FunctionDecorator:
    def __call__(self, function, *args):
        return function(*args)
"""


def defined(text: str, filename: str) -> dict[str, Any]:
    """What a file of that name would define."""
    names: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), names)
    return names


def here() -> FrameType | None:
    """The frame that makes a call of tf.data."""
    return sys._getframe(1)


@pytest.mark.parametrize(
    ("called", "helper"), [("load", "tfds.load"), ("as_dataset", "as_dataset")]
)
def test_tensorflow_datasets_is_named_by_the_function_that_the_script_called(
    called: str, helper: str
) -> None:
    loading = defined(LOADING, f"{TFDS}/load.py")
    logged = defined(LOGGED, f"{TFDS}/logging/__init__.py")
    functions = {"load": loading["load"], "as_dataset": loading["DatasetBuilder"]().as_dataset}
    frame = logged["_FunctionDecorator"]()(functions[called], here)
    assert helper_called(frame) == helper


def test_a_users_function_that_tensorflow_datasets_calls_is_the_users() -> None:
    def examples() -> FrameType | None:
        return here()

    load = defined(LOADING, f"{TFDS}/load.py")["load"]
    assert helper_called(load(examples)) is None


@pytest.mark.parametrize(
    ("file", "helper"),
    [
        (f"{TFDS}/reader.py", True),
        (f"{SITE}/tensorflow_datasets/__init__.py", True),
        (f"{SITE}/tensorflow_hub/module.py", False),
        (f"{SITE}/keras/src/utils/image_dataset_utils.py", True),
        (f"{SITE}/keras/src/trainers/trainer.py", False),
        (f"{EXPERIMENTAL}/readers.py", True),
        (f"{EXPERIMENTAL}/io.py", True),
        (f"{EXPERIMENTAL}/pad_to_cardinality.py", True),
        (f"{EXPERIMENTAL}/from_list.py", True),
        (f"{EXPERIMENTAL}/snapshot.py", True),
        (f"{EXPERIMENTAL}/prefetching_ops.py", False),
    ],
)
def test_which_files_make_pipelines_for_their_callers(file: str, helper: bool) -> None:
    assert is_helpers(file) is helper
