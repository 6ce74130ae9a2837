"""Answers that differ only in their figures are alike; a cause that comes or goes is a change."""

from __future__ import annotations

from benchmarks.repeat import answer
from tests.factories import make_finding, make_session


def test_figures_alone_are_no_change() -> None:
    one = answer(make_session(findings=[make_finding(title="A map takes 20.1 ms of each step")]))
    other = answer(make_session(findings=[make_finding(title="A map takes 19.8 ms of each step")]))

    assert one.differences(other) == []


def test_a_cause_that_comes_is_a_change() -> None:
    one = answer(make_session(findings=[make_finding(title="A map runs one call at a time")]))
    other = answer(make_session(findings=[make_finding(title="A map holds the GIL")]))

    assert len(one.differences(other)) == 2
