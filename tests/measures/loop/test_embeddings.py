from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.embeddings import describe_embeddings, item_bytes
from pipediag.session.embeddings import Embedding
from pipediag.session.recorded_tables import RecordedIds, RecordedTableUse, RecordedVariable

TABLE = RecordedVariable("words", 1000, 64, "float32", trainable=True, slots=2)
USE = RecordedTableUse(
    variable="words/embeddings",
    device="CPU:0",
    lookups=1,
    copied_on_lookup=True,
    gradient="sparse",
    gradient_spread=False,
    writes_rows=True,
    writes_whole=False,
    whole_table_operations={},
    temporary_bytes=0,
    slots=1,
    slot_bytes=4000,
)
IDS = RecordedIds(
    batches=[5, 6, 7, 8],
    dtype="int64",
    lookups=400,
    unique=90,
    unique_per_batch=60.4,
    smallest=0,
    largest=999,
    zero_lookups=40,
    zeros_within=3,
    top_rows=10,
    top_lookups=200,
    top_lookups_ahead=80,
    lookups_ahead=200,
    outside=0,
)


def described(**changes: object) -> Embedding:
    (row,) = describe_embeddings([replace(TABLE, **{"use": USE, "ids": IDS, **changes})])  # type: ignore[arg-type]
    return row


def test_tables_and_slots_in_bytes_the_largest_first() -> None:
    rows = describe_embeddings(
        [
            RecordedVariable("small", 100, 8, "float32", trainable=True, slots=2),
            RecordedVariable("large", 1000, 64, "bfloat16", trainable=False, slots=0),
        ]
    )
    assert [(row.layer, row.table_bytes, row.slot_bytes) for row in rows] == [
        ("large", 128_000, 0),
        ("small", 3200, 6400),
    ]
    assert not rows[0].trainable
    assert rows[0].gradient is None
    assert rows[0].missing is not None
    assert rows[0].ids_missing is not None


def test_a_step_that_was_read_tells_of_slots_and_update() -> None:
    row = described()

    assert (row.slots, row.slot_bytes, row.gradient, row.update) == (1, 4000, "sparse", "sparse")
    assert (row.missing, row.ids_missing) == (None, None)


@pytest.mark.parametrize(
    ("use", "update"),
    [
        ({"writes_whole": True}, "dense"),
        ({"whole_table_operations": {"IsNan": 1}}, "dense"),
        ({"gradient": None, "writes_whole": True}, None),
    ],
)
def test_what_passes_over_the_whole_table_is_dense(
    use: dict[str, object], update: str | None
) -> None:
    row = described(use=replace(USE, **use))  # type: ignore[arg-type]

    assert row.update == update
    assert (row.missing is None) is (update is not None)


def test_ids_of_a_few_batches() -> None:
    row = described()

    assert row.rows_touched_per_step == 60
    assert row.ids is not None
    assert (row.ids.batches, row.ids.first_batch, row.ids.last_batch) == (4, 5, 8)
    assert (row.ids.lookups_per_step, row.ids.unique_per_step) == (100.0, 60.4)
    assert (row.ids.hot_percent, row.ids.hot_percent_ahead) == (50.0, 40.0)
    assert row.ids.zero_percent == 10.0
    assert row.ids.out_of_vocabulary_percent is None


def test_one_batch_tells_nothing_of_hot_rows_to_come() -> None:
    ids = described(ids=replace(IDS, top_lookups_ahead=None, lookups_ahead=None)).ids

    assert ids is not None
    assert ids.hot_percent_ahead is None


def test_tokens_out_of_vocabulary() -> None:
    ids = described(ids=replace(IDS, out_of_vocabulary=4)).ids

    assert ids is not None
    assert ids.out_of_vocabulary_percent == 1.0


@pytest.mark.parametrize(("dtype", "size"), [("float16", 2), ("int64", 8), ("unheard_of", 4)])
def test_bytes_of_a_number(dtype: str, size: int) -> None:
    assert item_bytes(dtype) == size


def test_a_cast_of_the_table_is_no_part_of_its_update() -> None:
    cast = replace(USE, whole_table_operations={"Cast": 1})

    assert described(use=cast).update == "sparse"
    assert described(use=replace(cast, whole_table_operations={"Cast": 1, "Mul": 1})).update == (
        "dense"
    )


def test_bytes_that_lookups_copy() -> None:
    assert described(use=replace(USE, copies=2)).copied_bytes_per_step == 2 * 1000 * 64 * 4
    assert described().copied_bytes_per_step == 0
    assert described(use=None).copied_bytes_per_step is None


def test_of_some_lookups_alone_it_is_not_known_how_many_rows_a_step_needs() -> None:
    row = described(ids=replace(IDS, incomplete="1 of 2 lookups could not be followed."))

    assert row.rows_touched_per_step is None
    assert row.ids is not None
    assert (row.ids.lookups, row.ids.incomplete) == (400, "1 of 2 lookups could not be followed.")
