from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipediag.capture.measuring.id_tally import IdTally
from pipediag.capture.measuring.kept_ids import KeptIds
from pipediag.capture.recorder import Recorder
from pipediag.capture.step_tables import LookedUp, Passage
from pipediag.session.recorded_tables import RecordedVariable
from pipediag.session.table_bench import TableKey

RECORD = RecordedVariable("words", 10, 4, "float32", trainable=True, slots=0)


def tally_of(*batches: list[int]) -> IdTally:
    tally = IdTally(10, Passage("int64"), None)
    for number, ids in enumerate(batches, 1):
        tally.add(number, [LookedUp(np.array(ids))])
    return tally


def test_ids_of_each_batch_are_kept_without_those_outside_the_table(tmp_path: Path) -> None:
    kept = KeptIds(tmp_path, Recorder(tmp_path / "recording.json"))
    kept.keep(RECORD, tally_of([9, 9, 9]))
    kept.keep(RECORD, tally_of([1, 2, 2], [3, 10, -1]))

    with np.load(tmp_path / TableKey("words", None, 10, 4).ids_file) as file:
        assert {name: file[name].tolist() for name in file.files} == {"0": [1, 2, 2], "1": [3]}


def test_a_directory_that_is_gone_costs_the_times_alone(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    KeptIds(tmp_path / "gone", recorder).keep(RECORD, tally_of([1]))

    (note,) = recorder.recording.notes
    assert "words could not be kept" in note


@pytest.mark.parametrize("error", [OSError(28, "No space left"), MemoryError("of 9 GiB")])
def test_a_file_that_is_not_whole_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    directory = tmp_path / "ids"
    directory.mkdir()
    kept = KeptIds(directory, recorder)
    kept.keep(RECORD, tally_of([1]))

    def cut_off(path: Path, **_: object) -> None:
        assert path.name != TableKey("words", None, 10, 4).ids_file
        path.write_bytes(b"PK")
        raise error

    monkeypatch.setattr(np, "savez", cut_off)
    kept.keep(RECORD, tally_of([2]))

    assert list(directory.iterdir()) == []
    (note,) = recorder.recording.notes
    assert str(error) in note
