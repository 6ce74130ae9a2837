"""Whose function makes a pipeline, and what is kept of a program that makes them for days."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.pipelines.plan_recorder import MANY, PlanRecorder, helper_called, is_helpers
from pipediag.capture.recorder import Recorder
from tests.recordings import make_recorded_function, make_recorded_loop, make_recorded_operation

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


@pytest.mark.parametrize(
    ("file", "helper"),
    [
        (f"{TFDS}/reader.py", True),
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


def dataset_class() -> Any:
    """A fresh class with as much of a dataset as a call is recorded by."""

    class Dataset:
        element_spec = None

        def __init__(self, *inputs: Dataset) -> None:
            self.inputs = inputs

        def _inputs(self) -> tuple[Dataset, ...]:
            return self.inputs

        @staticmethod
        def range(_: int) -> Dataset:
            return Dataset()

        def batch(self, _: int) -> Dataset:
            return Dataset(self)

    return Dataset


class Program:
    """Makes pipelines of a class that is hooked."""

    def __init__(self, directory: Path) -> None:
        self.recorder = Recorder(directory / "recording.json")
        self.plan = PlanRecorder(self.recorder)
        self.datasets = dataset_class()
        self.plan.install(self.datasets, Guard(self.recorder.note))

    def pipeline(self) -> Any:
        return self.datasets.range(10).batch(2)

    @property
    def kinds(self) -> dict[str, str]:
        return {one.id: one.kind for one in self.recorder.recording.operations}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_pipelines_that_are_read_once_are_let_go(program: Program) -> None:
    first = program.pipeline()
    program.recorder.recording.loops.append(make_recorded_loop(root_op_id="op4"))
    for _ in range(3 * MANY):
        program.pipeline()

    assert len(program.kinds) <= MANY
    assert len(program.plan._marked) <= MANY
    kept = [id for id in ("op1", "op2", "op3", "op4", "op5") if id in program.kinds]
    assert kept == ["op1", "op2", "op3", "op4"], "what lives, and what a loop reads from"
    assert program.plan.operation_of(first) == "op2"


def test_that_a_pipeline_has_called_python_is_remembered(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    function = make_recorded_function(python_function_names=["read"])
    recorder.recording.operations.append(make_recorded_operation("op1", "map", function=function))
    recorder.drop_operations({"op1"})

    assert recorder.recording.operations == []
    assert recorder.pipelines_call_python
