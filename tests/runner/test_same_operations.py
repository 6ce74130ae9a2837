from __future__ import annotations

from typing import Any

import pytest

from pipediag.runner.same_operations import (
    BehavedOtherwiseError,
    asked_by_new_ids,
    same_operations,
)
from pipediag.session.edits import Insert, Move, MoveLayers, SetModel, SetParameters, SkipCallback
from pipediag.session.messages import Answer, Command, Prepare, Prepared, Pull
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recording import Recording
from tests.recordings import make_recorded_loop, make_recording


def op(number: int, kind: str, *parents: int, line: int = 1, **fields: Any) -> RecordedOperation:
    parent_ids = [f"op{parent}" for parent in parents]
    return RecordedOperation(f"op{number}", kind, kind, "train.py", line, parent_ids, **fields)


def recorded(*operations: RecordedOperation, root: str, **loop: Any) -> Recording:
    return make_recording(
        operations=list(operations), loops=[make_recorded_loop(root_op_id=root, **loop)]
    )


FIRST = recorded(op(1, "range"), op(2, "map", 1, line=2), op(3, "batch", 2), root="op3")


def test_ids_that_have_shifted_are_matched_by_kind_and_place() -> None:
    second = recorded(
        op(1, "list_files"),
        op(2, "range"),
        op(3, "map", 2, line=2),
        op(4, "batch", 3),
        root="op4",
    )

    assert same_operations(FIRST, second, "loop1") == {"op3": "op4", "op2": "op3", "op1": "op2"}


def test_what_a_function_makes_is_matched_too() -> None:
    inner = op(3, "TFRecordDataset", inside_function_of="op2")
    outer = op(2, "interleave", 1)
    first = recorded(op(1, "range"), outer, inner, root="op2")

    assert same_operations(first, first, "loop1") == {one: one for one in ("op1", "op2", "op3")}
    with pytest.raises(BehavedOtherwiseError, match="another pipeline"):
        same_operations(first, recorded(op(1, "range"), outer, root="op2"), "loop1")


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (recorded(*FIRST.operations, root="op3", line=9), "line 9 of .* line 20 of"),
        (recorded(*FIRST.operations, root="op3", kind="eager"), "came where the one"),
        (recorded(*FIRST.operations, root="op3", id="loop2"), "its loop did not come"),
        (recorded(*FIRST.operations, root="op2"), "another pipeline"),
        (
            recorded(op(1, "range"), op(2, "map", 1, line=5), op(3, "batch", 2), root="op3"),
            "another pipeline",
        ),
    ],
)
def test_a_script_that_behaves_otherwise_is_found_out(second: Recording, said: str) -> None:
    with pytest.raises(BehavedOtherwiseError, match=said):
        same_operations(FIRST, second, "loop1")


def test_arms_are_asked_for_by_the_ids_of_the_second_run() -> None:
    asked: list[Command] = []

    def ask(command: Command, _limit_s: float) -> Answer:
        asked.append(command)
        return Prepared("arm")

    changes = (
        SetParameters("op1", {"num_parallel_calls": -1}),
        Insert("op2", "cache"),
        Move("op1", "op2"),
        SetModel({"jit_compile": True}),
        SkipCallback("Logger", "train.py", 30),
        MoveLayers(("words",), "op2"),
    )
    again = asked_by_new_ids(ask, {"op1": "op4", "op2": "op5"})
    again(Prepare("arm", changes, "equal"), 1.0)
    again(Pull("arm", 1.0), 1.0)

    assert asked == [
        Prepare(
            "arm",
            (
                SetParameters("op4", {"num_parallel_calls": -1}),
                Insert("op5", "cache"),
                Move("op4", "op5"),
                SetModel({"jit_compile": True}),
                SkipCallback("Logger", "train.py", 30),
                MoveLayers(("words",), "op5"),
            ),
            "equal",
        ),
        Pull("arm", 1.0),
    ]
