from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.maps import PER_ELEMENT_MAP
from pipediag.session.edits import Edit, Move
from pipediag.session.pipeline import Operation, OperationFunction
from tests.factories import make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, run, session_of, source


def cheap_map(graph_ops: dict[str, int] | None = None, **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 256.0,
        "self_ms_per_step": 5.0,
        "function": make_function(graph_ops=graph_ops or {"Cast": 1, "Mul": 2}),
    }
    return make_operation("map", "map", **{**values, **overrides})


def looking_up(**more: int) -> OperationFunction:
    graph_ops = {"Placeholder": 4, "Const": 4, "NotEqual": 1, "LookupTableFindV2": 1, **more}
    return make_function(stateful=True, graph_ops=graph_ops)


def test_fails_and_bounds_what_batching_buys() -> None:
    finding = only(PER_ELEMENT_MAP, session_of(source(), cheap_map(), batch(256)))
    assert finding.status == "fail"
    # Of 7 ms of wait 5.2 ms are explained: the map's 5 ms go, and what nothing explains.
    assert finding.speedup_at_most == pytest.approx(10 / (10 - 7.1), abs=0.001)
    assert finding.evidence["us_per_element"] == pytest.approx(19.53)


@pytest.mark.parametrize(
    ("graph_op", "form"),
    [("ParseSingleExample", "tf.io.parse_example"), ("StringSplitV2", "to_tensor()")],
)
def test_names_the_form_for_batches(graph_op: str, form: str) -> None:
    op = cheap_map({graph_op: 1, "Const": 3})
    finding = only(PER_ELEMENT_MAP, session_of(source(), op, batch(256)))
    assert finding.status == "fail"


def test_a_function_that_may_not_broadcast_only_informs() -> None:
    op = cheap_map({"MatMul": 1, "Mul": 1})
    finding = only(PER_ELEMENT_MAP, session_of(source(), op, batch(256)))
    assert finding.status == "informative"


@pytest.mark.parametrize(
    "op",
    [
        cheap_map(self_ms_per_step=80.0),
        cheap_map(elements=4.0),
        cheap_map(self_ms_per_step=None),
    ],
)
def test_costly_few_and_unmeasured_calls_are_tried_all_the_same(op: Operation) -> None:
    finding = only(PER_ELEMENT_MAP, session_of(source(), op, batch(256)))
    assert (finding.status, finding.edit is not None) == ("informative", True)


@pytest.mark.parametrize(
    "op",
    [
        cheap_map(function=make_function(stateful=True)),
        cheap_map(function=looking_up(LookupTableInsertV2=1)),
        cheap_map(function=looking_up(EagerPyFunc=1)),
        cheap_map(function=looking_up(ReadVariableOp=1)),
        cheap_map(function=looking_up(RandomUniform=1)),
    ],
)
def test_what_hangs_on_more_than_its_element_passes(op: Operation) -> None:
    assert only(PER_ELEMENT_MAP, session_of(source(), op, batch(256))).status == "pass"


def test_a_map_of_batches_passes() -> None:
    session = session_of(source(), batch(256), cheap_map(elements=1.0))
    assert only(PER_ELEMENT_MAP, session).status == "pass"


def test_a_table_lookup_is_stateful_to_tensorflow_only() -> None:
    op = cheap_map(function=looking_up(SelectV2=2))
    finding = only(PER_ELEMENT_MAP, session_of(source(), op, batch(256)))
    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.edit.changes == (Move("map", "batch"),)
    assert finding.edit.check == "equal"


def test_a_lookup_moves_with_a_map_behind_it() -> None:
    op = cheap_map(function=looking_up())
    first, second = run(PER_ELEMENT_MAP, session_of(source(), op, second_map(), batch(256)))
    assert first.edit is not None
    assert first.edit.changes == (Move("map", "batch"), Move("second", "map"))
    assert second.edit is None


@pytest.mark.parametrize(("self_ms", "told"), [(3.5, False), (3.2, True)])
def test_wait_that_is_on_no_clock_is_said_where_it_is_most(self_ms: float, told: bool) -> None:
    """7 ms of wait; source and batch take 0.2 ms."""
    op = cheap_map(self_ms_per_step=self_ms)
    finding = only(PER_ELEMENT_MAP, session_of(source(), op, batch(256)))
    assert finding.evidence["wait_not_counted_ms"] == pytest.approx(7 - 0.2 - self_ms)


def test_a_filter_between_forbids_the_swap() -> None:
    session = session_of(source(), cheap_map(), make_operation("f", "filter"), batch(256))
    assert only(PER_ELEMENT_MAP, session).status == "pass"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    session = session_of(source(), cheap_map(), batch(256), **keeps_up())
    assert only(PER_ELEMENT_MAP, session).status == "informative"


def test_missing_breakdown_is_inconclusive() -> None:
    assert only(PER_ELEMENT_MAP, make_session(breakdown=None)).status == "inconclusive"


def test_tries_the_map_behind_the_batch_if_batches_stay_equal() -> None:
    shuffle = make_operation("shuffle", "shuffle")
    finding = only(PER_ELEMENT_MAP, session_of(source(), cheap_map(), shuffle, batch(256)))
    assert finding.edit == Edit(
        id="per-element-map:map",
        label="map in line 12 moved behind the batch in line 9",
        changes=(Move("map", "batch"),),
        check="equal",
    )


def test_where_only_values_can_tell_it_is_tried_all_the_same() -> None:
    session = session_of(source(), cheap_map({"MatMul": 1}), batch(256))
    finding = only(PER_ELEMENT_MAP, session)
    assert finding.status == "informative"
    assert finding.edit is not None
    assert finding.edit.changes == (Move("map", "batch"),)


def second_map(graph_ops: dict[str, int] | None = None) -> Operation:
    return cheap_map(graph_ops).model_copy(update={"id": "second", "line": 13})


def test_maps_that_use_its_results_move_with_it() -> None:
    first, second = run(
        PER_ELEMENT_MAP, session_of(source(), cheap_map(), second_map(), batch(256))
    )
    assert first.edit is not None
    assert first.edit.changes == (Move("map", "batch"), Move("second", "map"))
    assert second.edit is None
    assert second.trial.reason == "It is tried together with the map in line 12."


def test_a_map_behind_it_that_may_not_broadcast_keeps_it_in_place() -> None:
    maps = (cheap_map(), second_map({"MatMul": 1}))
    first, second = run(PER_ELEMENT_MAP, session_of(source(), *maps, batch(256)))
    assert (first.status, first.edit) == ("fail", None)
    assert "take its single elements" in str(first.trial.reason)
    assert second.edit is not None
    assert second.edit.changes == (Move("second", "batch"),)


def test_parsing_is_tried_in_its_form_for_batches() -> None:
    maps = (cheap_map({"ParseExampleV2": 1, "Const": 3}), second_map())
    first, _ = run(PER_ELEMENT_MAP, session_of(source(), *maps, batch(256)))
    assert first.status == "fail"
    assert first.edit is not None
    assert first.edit.changes == (Move("map", "batch"), Move("second", "map"))
    assert first.edit.label.endswith("behind the batch in line 9, with tf.io.parse_example")


def test_a_function_with_another_form_for_batches_is_not_tried() -> None:
    op = cheap_map({"StringSplitV2": 1})
    finding = only(PER_ELEMENT_MAP, session_of(source(), op, batch(256)))
    assert finding.edit is None
    assert "written for whole batches" in str(finding.trial.reason)
