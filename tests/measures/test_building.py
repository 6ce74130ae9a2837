"""Steps in which something was traced, on spans made by hand."""

from __future__ import annotations

import pytest

from pipediag.measures.recorded_windows import Building
from pipediag.session.timeline import Span, Timeline


@pytest.mark.parametrize(
    ("start_ns", "step_ns", "builds"),
    [
        (90, 20, True),
        (100, 5, False),  # it ended as this one began
        (80, 20, True),
        (70, 20, False),
        (290, 20, False),  # a callback, and a call that never ended
    ],
)
def test_a_step_builds_where_a_call_that_traced_ends_in_it(
    start_ns: int, step_ns: int, builds: bool
) -> None:
    spans = [
        Span(1, "first_call", 85, 100),
        Span(2, "callback", 290, 300),
        Span(3, "first_call", 295, None),
    ]
    assert Building(Timeline(spans)).is_in(start_ns, step_ns) is builds


def test_where_nothing_was_written_nothing_builds() -> None:
    assert not Building(Timeline()).is_in(0, 1000)
