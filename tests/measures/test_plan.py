from __future__ import annotations

from pipediag.measures.plan import plan_of
from tests.factories import make_plan, make_recorded_operation


def test_sources_come_first_and_strangers_stay_out() -> None:
    other = make_recorded_operation("op9", "range")
    assert [op.id for op in plan_of([other, *reversed(make_plan())], "op3")] == [
        "op1",
        "op2",
        "op3",
    ]


def test_a_function_that_was_traced_twice_counts_once() -> None:
    operations = [
        make_recorded_operation("op1", "from_tensor_slices"),
        make_recorded_operation("op2", "flat_map", parent_ids=["op1"]),
        make_recorded_operation("op3", "TFRecordDataset", line=5, inside_function_of="op2"),
        make_recorded_operation("op4", "TFRecordDataset", line=5, inside_function_of="op2"),
    ]
    assert [op.id for op in plan_of(operations, "op2")] == ["op1", "op4", "op2"]


def test_an_unknown_root_has_no_plan() -> None:
    assert plan_of(make_plan(), None) == []
    assert plan_of(make_plan(), "op77") == []
