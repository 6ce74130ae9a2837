from __future__ import annotations

from pipediag.capture.replay.refusal import at_start, first_line, said
from pipediag.session.recording import RecordedOperation


def test_operations_are_named_by_kind_and_line() -> None:
    at_line = RecordedOperation("op1", "TFRecordDataset", "name", "/home/me/train.py", 12)
    nowhere = RecordedOperation("op2", "map", "name", None, None)

    assert said(at_line) == "the TFRecordDataset in train.py, line 12"
    assert at_start(said(at_line)) == "The TFRecordDataset in train.py, line 12"
    assert said(nowhere) == "the map"


def test_errors_are_cut_to_one_line() -> None:
    assert first_line(ValueError("\n bad shape \nmany\nlines")) == "ValueError: bad shape"
    assert first_line(KeyError()) == "KeyError"
