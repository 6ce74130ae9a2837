"""A table that several loops of one script train, each in its own way."""

from __future__ import annotations

from dataclasses import replace

from pipediag.session.recorded_tables import RecordedTableUse, RecordedVariable
from tests.recordings import make_recording

TRAINED = RecordedVariable("words", 1000, 64, "float32", trainable=True, slots=2)
FROZEN = replace(TRAINED, trainable=False, slots=0, idle_slot_bytes=512_000)
USE = RecordedTableUse("words", "CPU", 1, True, None, False, False, False, {}, 0, 0, 0)


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
    assert (table.trainable, table.idle_slot_bytes) == (True, None)
