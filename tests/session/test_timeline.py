"""What is written of a run reads back, whatever was cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.errors import PipediagError
from pipediag.session.reading import read_timeline
from pipediag.session.timeline import (
    SeenLine,
    SeenLines,
    Span,
    Timeline,
    parse_timeline,
    seen_line,
    span_line,
    until_line,
)

SPANS = [
    Span(1, "script", 10, None),
    Span(2, "fit", 20, 80, "fit", "train.py", 20),
    Span(3, "callback", 70, 75, 'Na"mé\n', "/home/mé/\udcff.py", 7),
]
SEEN = SeenLines(
    30, 40, (SeenLine("train.py", 3, "main", True, 9, at_ns=35), SeenLine("b.py", 1, "f", False, 1))
)
LINES = [*map(span_line, SPANS), seen_line(SEEN), until_line(99)]


def test_all_that_is_written_reads_back() -> None:
    assert parse_timeline(LINES) == Timeline(SPANS, [SEEN], 99)
    assert parse_timeline(b"".join(LINES).splitlines()) == Timeline(SPANS, [SEEN], 99)


def test_a_line_is_one_array_of_plain_text() -> None:
    assert span_line(SPANS[1]) == b'["span",2,"fit",20,80,"fit","train.py",20]\n'
    assert seen_line(SEEN) == (
        b'["lines",30,40,[["train.py",3,"main",true,9,false,35],["b.py",1,"f",false,1,false,null]]]\n'
    )
    assert until_line(99) == b'["until",99]\n'
    for line in LINES:
        assert line.isascii()
        assert line.count(b"\n") == 1


def test_nothing_is_an_empty_timeline() -> None:
    assert parse_timeline([]) == Timeline([], [], None)
    assert Timeline().last_ns is None


def test_the_later_line_of_a_span_holds_and_spans_are_in_order() -> None:
    ended = Span(1, "script", 10, 90)
    later = Span(9, "fit", 5, 6)

    assert parse_timeline(map(span_line, [*SPANS, later, ended])).spans == [
        later,
        ended,
        *SPANS[1:],
    ]


def test_spans_that_began_at_once_are_in_the_order_of_their_numbers() -> None:
    two = [Span(2, "fit", 5, 9), Span(1, "script", 5, None)]

    assert [span.id for span in parse_timeline(map(span_line, two)).spans] == [1, 2]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"5",
        b"[]",
        b"null",
        b"{}",
        b'"span"',
        b'["span"]',
        b'["span",1,"fit"]',
        b'["span",[1],"fit",1,2]',
        b'["span",1,"fit",1,2,"","",3,4]',
        b'["lines",1]',
        b'["lines",1,2,5]',
        b'["lines",1,2,[[1]]]',
        b'["until"]',
        b'["until",1,2]',
        b'["other",1]',
        b"\xff\xfe",
        b"\x00\x00",
        b'["span",1,"ste["span",1,"steps",1,2]',
    ],
)
def test_a_line_that_nobody_wrote_is_passed_over(line: bytes) -> None:
    assert parse_timeline([LINES[0], line, LINES[1]]) == Timeline(SPANS[:2], [], None)


@given(st.integers(0, len(b"".join(LINES))))
def test_a_cut_last_line_is_passed_over(length: int) -> None:
    whole = [len(b"".join(LINES[: n + 1])) - 1 for n in range(len(LINES))]
    kept = sum(end <= length for end in whole)

    parsed = parse_timeline(b"".join(LINES)[:length].splitlines())
    assert parsed == parse_timeline(LINES[:kept])


@given(
    st.text(st.characters(codec=None)),
    st.one_of(st.none(), st.text()),
    st.one_of(st.none(), st.integers(0)),
)
def test_any_name_and_place_reads_back(name: str, file: str | None, line: int | None) -> None:
    span = Span(1, "callback", 5, 6, name, file, line)

    assert parse_timeline(span_line(span).splitlines()).spans == [span]


@pytest.mark.parametrize(
    ("timeline", "last_ns"),
    [
        (Timeline([Span(1, "script", 10, None)]), 10),
        (Timeline([Span(1, "script", 10, None), Span(2, "fit", 20, 80)]), 80),
        (Timeline([Span(1, "fit", 20, 30)], [SEEN]), 40),
        (Timeline([Span(1, "fit", 20, 50)], [SEEN]), 50),
    ],
)
def test_the_last_moment_of_which_anything_is_known(timeline: Timeline, last_ns: int) -> None:
    assert timeline.last_ns == last_ns


def test_the_childs_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    assert read_timeline(path) == Timeline()
    path.write_bytes(b"".join(LINES))
    assert read_timeline(path) == Timeline(SPANS, [SEEN], 99)
    assert [json.loads(line)[0] for line in path.read_bytes().splitlines()][-1] == "until"


def test_a_file_that_cannot_be_read_says_what_is_lost(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match="Where the run's time went is lost"):
        read_timeline(tmp_path)
