"""The Python behind the operation that is slow: where it was seen running."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.python_sources import python_behind
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from tests import factories
from tests.records import make_function, make_operation, make_pipeline

PYTHON = make_function(graph_ops={"EagerPyFunc": 1})


def hot(**overrides: Any) -> HotLine:
    values = {"file": "/p/data.py", "line": 20, "function": "fetch", "thread": "source"}
    return HotLine(**{"percent": 76.0, **values, **overrides})


def session(line: HotLine | None, **overrides: Any) -> Session:
    op = make_operation("map_0", file="/p/train.py", line=31, function=PYTHON)
    values = {
        "pipeline": make_pipeline(ops=[op], bottleneck_op_id="map_0"),
        "verdict": factories.make_verdict(file="/p/train.py", line=31),
        "host": factories.make_host(hot_python=[line] if line is not None else []),
    }
    return factories.make_session(**{**values, **overrides})


def test_the_line_that_was_met_most_often() -> None:
    assert python_behind(session(hot())) == hot()
    far = hot(file="/p/train.py", line=27)
    assert python_behind(session(far)) == far


@pytest.mark.parametrize(
    "line",
    [
        None,
        hot(thread="main"),
        # Too seldom to tell.
        hot(percent=9.0),
        # Among the lines that are shown anyway.
        hot(file="/p/train.py", line=28),
    ],
)
def test_none_where_nothing_is_known_or_it_is_shown_anyway(line: HotLine | None) -> None:
    assert python_behind(session(line)) is None


def test_none_where_other_python_makes_input_too() -> None:
    ops = [
        make_operation("map_0", file="/p/train.py", line=31, function=PYTHON),
        make_operation("map_1", file="/p/train.py", line=32, function=PYTHON),
    ]
    several = make_pipeline(ops=ops, bottleneck_op_id="map_0")
    assert python_behind(session(hot(), pipeline=several)) is None


def test_none_where_input_is_not_what_is_slow() -> None:
    verdict = factories.make_verdict(bottleneck="compute", file="/p/train.py", line=31)
    assert python_behind(session(hot(), verdict=verdict)) is None
