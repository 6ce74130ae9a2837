from __future__ import annotations

import pytest

from pipediag.facts.pipeline import calls_python, differs_by_pass, draws_random, only_looks_up, uses
from tests.records import make_function, make_operation

FLIP = make_function(graph_ops={"RandomUniform": 1, "Mul": 2})
SCALE = make_function(graph_ops={"Mul": 2})
PYTHON = make_function(graph_ops={"EagerPyFunc": 1})


def test_operations_of_a_family_come_sorted() -> None:
    family = frozenset({"Sub", "Add", "Mul"})

    assert uses(make_function(graph_ops={"Sub": 1, "Add": 1, "Cast": 1}), family) == ["Add", "Sub"]
    assert uses(None, family) == []


def test_passes_differ_where_the_operation_or_its_function_draws() -> None:
    assert draws_random(FLIP)
    assert not draws_random(SCALE)
    assert draws_random(None) is False

    assert differs_by_pass(make_operation("map", function=FLIP))
    assert not differs_by_pass(make_operation("map", function=SCALE))
    assert differs_by_pass(make_operation("mixed", "sample_from_datasets"))
    assert not differs_by_pass(make_operation("batch", "batch"))


def test_python_that_only_traces_is_not_passed_by_elements() -> None:
    assert calls_python(make_operation("map", function=PYTHON))
    assert not calls_python(make_operation("map", function=SCALE))
    assert not calls_python(make_operation("batch", "batch"))


@pytest.mark.parametrize(
    "beside", ["EagerPyFunc", "ReadVariableOp", "RandomUniform", "LookupTableInsertV2"]
)
def test_only_looks_up_what_changes_nothing_beside(beside: str) -> None:
    looks_up = {"LookupTableFindV2": 1, "NotEqual": 1}
    assert only_looks_up(make_function(stateful=True, graph_ops=looks_up))
    assert not only_looks_up(make_function(stateful=True, graph_ops={**looks_up, beside: 1}))
    assert not only_looks_up(SCALE)
    assert not only_looks_up(None)
