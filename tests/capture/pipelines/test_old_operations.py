"""What is recorded of a program that makes pipelines for days, with datasets that are played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.pipelines.plan_recorder import MANY, PlanRecorder, needed
from pipediag.capture.recorder import Recorder
from tests.recordings import make_recorded_function, make_recorded_loop, make_recorded_operation


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


def test_an_ordinary_script_keeps_all_of_them(program: Program) -> None:
    for _ in range(MANY // 2):
        program.pipeline()

    assert len(program.kinds) == MANY


def test_a_program_that_keeps_its_pipelines_keeps_their_operations(program: Program) -> None:
    kept = [program.pipeline() for _ in range(MANY)]

    assert len(program.kinds) == 2 * len(kept)


def test_what_is_needed_is_all_that_the_elements_come_through() -> None:
    operations = [
        make_recorded_operation("source", "range"),
        make_recorded_operation("flat", "flat_map", parent_ids=["source"]),
        make_recorded_operation("inner", "range", inside_function_of="flat"),
        make_recorded_operation("batch", "batch", parent_ids=["flat"]),
        make_recorded_operation("other", "range"),
    ]

    assert needed(operations, ["batch"]) == {"source", "flat", "inner", "batch"}
    assert needed(operations, ["inner"]) == {"source", "flat", "inner"}


def test_that_a_pipeline_has_called_python_is_remembered(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    function = make_recorded_function(python_function_names=["read"])
    recorder.recording.operations.append(make_recorded_operation("op1", "map", function=function))
    recorder.drop_operations({"op1"})

    assert recorder.recording.operations == []
    assert recorder.pipelines_call_python
