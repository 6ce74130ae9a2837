from __future__ import annotations

import pytest

from pipediag.measures.loop.embeddings import describe_embeddings, item_bytes
from pipediag.session.recorded_tables import RecordedVariable


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


@pytest.mark.parametrize(("dtype", "size"), [("float16", 2), ("int64", 8), ("unheard_of", 4)])
def test_bytes_of_a_number(dtype: str, size: int) -> None:
    assert item_bytes(dtype) == size
