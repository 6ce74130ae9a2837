"""Every moment of a run belongs to one span."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.measures.run.places import Segment, segments_of
from pipediag.session.timeline import Span
from pipediag.vocabulary import SpanKind

KINDS: tuple[SpanKind, ...] = (
    "script",
    "fit",
    "evaluation",
    "callback",
    "first_batch",
    "steps",
    "first_call",
    "tracing",
    "aside",
)


def owners(spans: list[Span], start: int, end: int) -> list[tuple[int, int, int | None]]:
    return [
        (one.start_ns, one.end_ns, one.span.id if one.span else None)
        for one in segments_of(spans, start, end)
    ]


def test_what_began_last_has_its_moments() -> None:
    spans = [Span(1, "script", 10, 90), Span(2, "fit", 20, 60), Span(3, "callback", 30, 40)]

    assert owners(spans, 0, 100) == [
        (0, 10, None),
        (10, 20, 1),
        (20, 30, 2),
        (30, 40, 3),
        (40, 60, 2),
        (60, 90, 1),
        (90, 100, None),
    ]


def test_of_two_that_began_at_once_the_later_written_one_is_within() -> None:
    assert owners([Span(1, "script", 0, 10), Span(2, "fit", 0, 5)], 0, 10) == [
        (0, 5, 2),
        (5, 10, 1),
    ]


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("evaluation", "steps"),
        ("evaluation", "callback"),
        ("first_call", "evaluation"),
        ("tracing", "evaluation"),
        ("aside", "first_call"),
        ("aside", "tracing"),
        ("aside", "steps"),
    ],
)
def test_some_go_before_what_began_in_them(outer: SpanKind, inner: SpanKind) -> None:
    assert {owner for *_, owner in owners([Span(1, outer, 0, 9), Span(2, inner, 3, 6)], 0, 9)} == {
        1
    }


def test_all_that_is_open_is_around_the_outermost_first() -> None:
    spans = [Span(3, "callback", 4, 6), Span(1, "script", 0, 9), Span(2, "fit", 2, 8)]
    middle = next(one for one in segments_of(spans, 0, 9) if one.start_ns == 4)

    assert [span.id for span in middle.around] == [1, 2, 3]
    assert middle.within("fit") == spans[2]
    assert middle.within("steps") is None
    assert middle.ns == 2


def test_the_innermost_of_a_kind_is_the_one_within() -> None:
    spans = [Span(1, "fit", 0, 9), Span(2, "fit", 2, 8)]
    inner = next(one for one in segments_of(spans, 0, 9) if one.start_ns == 2)

    assert inner.within("fit") == spans[1]


def test_what_lies_outside_of_the_run_is_cut_off() -> None:
    spans = [Span(1, "script", 0, 50), Span(2, "fit", 60, 70), Span(3, "fit", 0, 10)]

    assert owners(spans, 10, 40) == [(10, 40, 1)]


def test_what_never_ended_lasts_to_the_end_of_the_run() -> None:
    assert owners([Span(1, "script", 10, None), Span(2, "fit", 20, None)], 0, 100) == [
        (0, 10, None),
        (10, 20, 1),
        (20, 100, 2),
    ]


@pytest.mark.parametrize("call", ["script", "fit", "evaluation", "callback"])
def test_what_never_ended_lasts_no_longer_than_the_call_that_it_lies_in(call: SpanKind) -> None:
    spans = [Span(1, call, 10, 50), Span(2, "callback", 20, None), Span(3, "steps", 30, None)]

    assert [(one.start_ns, one.end_ns) for one in segments_of(spans, 0, 100)][-1] == (50, 100)
    assert segments_of(spans, 0, 100)[-1].span is None


def test_windows_and_steps_hold_nothing_that_has_to_end_with_them() -> None:
    spans = [Span(1, "aside", 10, 50), Span(2, "steps", 10, 40), Span(3, "fit", 20, None)]

    assert owners(spans, 0, 100)[-1] == (50, 100, 3)


def test_a_call_that_is_over_holds_nothing_that_begins_later() -> None:
    spans = [Span(1, "fit", 10, 20), Span(2, "fit", 20, 90), Span(3, "callback", 20, None)]

    assert owners(spans, 0, 100)[-2:] == [(20, 90, 3), (90, 100, None)]


def nested(start: int, end: int) -> st.SearchStrategy[list[tuple[SpanKind, int, int]]]:
    """Spans that lie apart or within each other."""
    if end - start < 2:
        return st.just([])

    @st.composite
    def some(draw: st.DrawFn) -> list[tuple[SpanKind, int, int]]:
        first = draw(st.integers(start, end - 1))
        last = draw(st.integers(first, end))
        inside = draw(nested(first, last)) if draw(st.booleans()) else []
        after = draw(nested(last, end)) if draw(st.booleans()) else []
        return [(draw(st.sampled_from(KINDS)), first, last), *inside, *after]

    return some()


def as_spans(listed: list[tuple[SpanKind, int, int]], unended: set[int]) -> list[Span]:
    return [
        Span(number, kind, first, None if number in unended else last)
        for number, (kind, first, last) in enumerate(listed)
    ]


def covers_once(segments: list[Segment], start: int, end: int) -> bool:
    bounds = [start, *(one.end_ns for one in segments)]
    return bounds[-1] == end and bounds[:-1] == [one.start_ns for one in segments]


@given(nested(0, 300), st.sets(st.integers(0, 10)), st.integers(0, 100), st.integers(200, 400))
def test_segments_cover_the_run_exactly_once(
    listed: list[tuple[SpanKind, int, int]], unended: set[int], start: int, end: int
) -> None:
    segments = segments_of(as_spans(listed, unended), start, end)

    assert covers_once(segments, start, end)
    for one in segments:
        assert one.ns > 0
        assert (one.span in one.around) == (one.span is not None)


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 300), st.integers(0, 300))))
def test_whatever_overlaps_segments_cover_the_run_exactly_once(
    listed: list[tuple[SpanKind, int, int]],
) -> None:
    assert covers_once(segments_of(as_spans(listed, {1}), 20, 250), 20, 250)


@given(nested(0, 300))
def test_a_span_has_all_of_its_moments_that_nothing_else_takes(
    listed: list[tuple[SpanKind, int, int]],
) -> None:
    plain = [span for span in as_spans(listed, set()) if span.kind in ("script", "fit", "steps")]
    for one in segments_of(plain, 0, 300):
        inside = [s for s in plain if s.start_ns <= one.start_ns and one.end_ns <= (s.end_ns or 0)]
        shortest = min((s.end_ns or 0) - s.start_ns for s in inside) if inside else None
        assert (one.span is None) == (not inside)
        if one.span is not None:
            assert (one.span.end_ns or 0) - one.span.start_ns == shortest


def test_a_span_without_an_end_lasts_no_longer_than_the_call_it_began_in() -> None:
    """And what begins as a call ends has begun behind it."""
    spans = [Span(1, "script", 0, 90), Span(2, "fit", 10, 50), Span(3, "steps", 20, None)]
    assert owners(spans, 0, 100)[2] == (20, 50, 3)
    behind = [Span(1, "script", 0, 90), Span(2, "fit", 10, 50), Span(3, "steps", 50, None)]
    assert owners(behind, 0, 100)[-2:] == [(50, 90, 3), (90, 100, None)]
