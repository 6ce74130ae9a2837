from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import late_filter
from pipediag.session.edits import Edit, Move
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def costly_map(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 64.0,
        "self_ms_per_step": 6.0,
        "element_bytes": 100,
        "function": make_function(),
    }
    return make_operation("map", "map", **{**values, **overrides})


def keep(elements: float | None = 32.0) -> Operation:
    return make_operation("filter", "filter", line=14, elements=elements)


def session_with(op: Operation, *behind: Operation, **overrides: Any) -> Session:
    first = source(elements=64.0, element_bytes=100)
    return session_of(first, op, *(behind or (keep(),)), batch(), **overrides)


def test_half_of_a_costly_map_that_is_dropped_is_tried_above_it() -> None:
    finding = only(late_filter, session_with(costly_map()))
    assert (finding.status, finding.op_id) == ("informative", "filter")
    assert "drops 50 % of what `map` at line 12 makes" in finding.advice
    assert finding.evidence["delay_ms_per_step"] == 3.0
    assert finding.edit == Edit(
        id="late-filter:filter",
        label="filter in line 14 moved above the map in line 12",
        changes=(Move("filter", "source"),),
        check="equal",
    )


@pytest.mark.parametrize("size", [None, 400])
def test_elements_of_another_size_are_not_tried(size: int | None) -> None:
    finding = only(late_filter, session_with(costly_map(element_bytes=size)))
    assert (finding.status, finding.edit) == ("informative", None)


@pytest.mark.parametrize(
    "session",
    [
        session_with(costly_map(), keep(62.0)),
        session_with(costly_map(self_ms_per_step=0.4)),
        session_with(costly_map(function=make_function(graph_ops={"RandomUniform": 1}))),
        session_with(costly_map(), **keeps_up()),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(late_filter, session).status == "pass"


def test_a_filter_behind_something_else_is_not_its_matter() -> None:
    session = session_with(costly_map(), make_operation("shuffle", "shuffle"), keep())
    assert only(late_filter, session).status == "not-applicable"


def test_what_was_not_measured_is_tried() -> None:
    dropped = only(late_filter, session_with(costly_map(), keep(None)))
    assert (dropped.status, dropped.evidence["dropped_percent"]) == ("informative", None)
    unmeasured = session_with(costly_map(self_ms_per_step=None))
    assert only(late_filter, unmeasured).status == "informative"
    assert only(late_filter, make_session(pipeline=None)).status == "inconclusive"


def test_unmeasured_drops_of_a_cheap_map_do_not_matter() -> None:
    session = session_with(costly_map(self_ms_per_step=0.1), keep(None))
    assert only(late_filter, session).status == "pass"
