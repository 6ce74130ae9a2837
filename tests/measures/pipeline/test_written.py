from __future__ import annotations

from pipediag.measures.pipeline import plan_of
from tests.recordings import make_plan, make_recorded_operation


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


def test_a_chain_longer_than_pythons_stack() -> None:
    links = [make_recorded_operation("op0", "range")]
    for number in range(1, 3000):
        links.append(make_recorded_operation(f"s{number}", "range"))
        parents = [links[-2].id, f"s{number}"]
        links.append(make_recorded_operation(f"op{number}", "concatenate", parent_ids=parents))
    ordered = [op.id for op in plan_of(links, "op2999")]
    assert len(ordered) == 5999
    assert (ordered[:4], ordered[-1]) == (["op0", "s1", "op1", "s2"], "op2999")
