from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import trace_only_python
from pipediag.session.findings import Finding
from tests.factories import make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, only, session_of, source


def finding_with(names: list[str], graph_ops: dict[str, int] | None = None, **op: Any) -> Finding:
    function = make_function(python_calls=names, graph_ops=graph_ops or {"Mul": 1})
    mapped = make_operation("map", "map", function=function, **op)
    return only(trace_only_python, session_of(source(), mapped, batch()))


@pytest.mark.parametrize("names", [["time.sleep"], ["print"], ["open"]])
def test_says_that_it_costs_nothing(names: list[str]) -> None:
    finding = finding_with(names)
    assert finding.status == "informative"
    assert "costs nothing" in finding.advice
    assert finding.op_id == "map"


def test_an_operation_that_tensorflow_removed_counts() -> None:
    finding = finding_with(["time.sleep"], removed_by_tensorflow=True)
    assert finding.status == "informative"
    assert finding.evidence["removed_by_tensorflow"] is True


@pytest.mark.parametrize("name", ["numpy.random.uniform", "random.random"])
def test_random_numbers_of_python_are_drawn_once(name: str) -> None:
    finding = finding_with([name])
    assert "every element gets the same" in finding.advice


@pytest.mark.parametrize(
    ("names", "graph_ops"),
    [
        (["time.sleep"], {"PyFunc": 1}),
        (["print"], {"PrintV2": 1}),
        (["numpy.random.uniform"], {"RandomUniform": 1}),
        (["numpy.random.uniform"], {"StatelessRandomUniformV2": 1}),
        (["numpy.float32", "train.print"], {"Cast": 1}),
    ],
)
def test_near_misses_pass(names: list[str], graph_ops: dict[str, int]) -> None:
    assert finding_with(names, graph_ops).status == "pass"


def test_an_operation_without_a_known_function_passes() -> None:
    session = session_of(source(), make_operation("map", "map", function=None), batch())
    assert only(trace_only_python, session).status == "pass"


def test_without_a_pipeline_it_is_inconclusive() -> None:
    assert only(trace_only_python, make_session(pipeline=None)).status == "inconclusive"


def test_all_that_ran_in_the_trace_is_named() -> None:
    assert finding_with(["time.sleep", "print"]).advice.startswith("`print`, `time.sleep`")
