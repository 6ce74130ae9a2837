"""What is written of a run reads back, whatever was cut."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.errors import PipediagError
from pipediag.session.messages import encode
from pipediag.session.recorded_loops import RecordedTableUse, RecordedVariable
from pipediag.session.store import read_recording
from pipediag.session.timeline import SeenLine, SeenLines, Span, Timeline, Unwritten, parse_timeline
from tests.recordings import make_recording


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    path.write_text(json.dumps(asdict(make_recording())), encoding="utf-8")
    assert read_recording(path) == make_recording()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"pid"', "Expecting"),
        ("[]", "Input should be a dictionary"),
        ('{"pid": "many"}', "pid: Input should be a valid integer"),
    ],
)
def test_a_damaged_recording_is_an_error_that_says_what(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "recording.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PipediagError, match=message):
        read_recording(path)


SPANS = [
    Span(1, "script", 10, None),
    Span(2, "fit", 20, 80, "fit", "train.py", 20),
    Span(3, "callback", 70, 75, 'Na"mé\n', "/home/mé/\udcff.py", 7),
]
SEEN = SeenLines(
    30, 40, (SeenLine("train.py", 3, "main", True, 9, at_ns=35), SeenLine("b.py", 1, "f", False, 1))
)
LINES = [*map(encode, SPANS), encode(SEEN), encode(Unwritten(99))]


def test_all_that_is_written_reads_back() -> None:
    assert parse_timeline(b"".join(LINES).splitlines()) == Timeline(SPANS, [SEEN], 99)


def test_the_later_line_of_a_span_holds_and_spans_are_in_order() -> None:
    ended = Span(1, "script", 10, 90)
    later = Span(9, "fit", 5, 6)

    assert parse_timeline(map(encode, [*SPANS, later, ended])).spans == [later, ended, *SPANS[1:]]


@given(st.integers(0, len(b"".join(LINES))))
def test_a_cut_last_line_is_passed_over(length: int) -> None:
    whole = [len(b"".join(LINES[: n + 1])) - 1 for n in range(len(LINES))]
    kept = sum(end <= length for end in whole)

    parsed = parse_timeline(b"".join(LINES)[:length].splitlines())
    assert parsed == parse_timeline(LINES[:kept])


TRAINED = RecordedVariable("words", 1000, 64, "float32", trainable=True)
FROZEN = replace(TRAINED, trainable=False)
USE = RecordedTableUse(variable="words", gradient=None, slot_bytes=0, writes_whole=False)


def test_a_table_that_is_frozen_before_the_second_fit_is_told_as_frozen() -> None:
    recording = make_recording(variables=[])
    recording.table(replace(TRAINED))
    recording.table(FROZEN)

    assert recording.variables == [FROZEN]


def test_tables_of_one_name_in_two_submodels_are_two() -> None:
    recording = make_recording(variables=[])
    first, second = (replace(TRAINED, path=f"{tower}/words/embeddings") for tower in "ab")
    recording.table(first).use = USE
    recording.table(second).use = replace(USE)

    assert [one.variable for one in recording.variables] == [
        "a/words/embeddings",
        "b/words/embeddings",
    ]


def test_a_variable_is_named_by_its_path_where_its_own_name_is_less() -> None:
    inner = replace(USE, variable="model/embeddings:0")

    assert replace(TRAINED, use=inner).variable == "model/embeddings:0"
    assert replace(TRAINED, use=inner, path="model/embeddings").variable == "model/embeddings:0"
    assert replace(TRAINED, use=inner, path="model/words/embeddings").variable == (
        "model/words/embeddings"
    )
    assert TRAINED.variable is None


def test_what_a_measured_loop_had_is_not_overwritten_by_a_later_one() -> None:
    recording = make_recording(variables=[])
    recording.table(replace(TRAINED)).use = USE
    recording.table(FROZEN)

    (table,) = recording.variables
    assert table.trainable
