from __future__ import annotations

from pipediag.reporters.tables.way_rows import way_rows
from tests.factories import make_embedding, make_session
from tests.way_times import make_way_time, timed_session


def test_a_row_for_each_way_with_bytes_and_time() -> None:
    rows = {row["way"]: row for row in way_rows(timed_session(make_way_time()))}

    timed, untimed = rows["row-wise update"], rows["hashing"]
    assert (timed["speedup"], timed["speedup_low"], timed["speedup_high"]) == (6.43, 6.31, 6.57)
    assert (timed["timed"], timed["timed_rows"], timed["time_missing"]) == ("step", 1000, None)
    assert untimed.get("speedup") is None
    assert untimed["time_missing"] == "It was not among the ways that were timed."
    assert rows["sharding"]["exchanged_bytes_per_step"] == 300 * (2 * 256 + 4)


def test_what_was_not_timed_says_so_in_each_row() -> None:
    rows = list(way_rows(make_session(embeddings=[make_embedding()])))

    assert rows
    assert all("--time-ways" in str(row["time_missing"]) for row in rows)


def test_host_bytes_of_ids_that_were_not_seen_are_blank() -> None:
    unseen = make_embedding(ids_missing="A loop.")
    rows = {row["way"]: row for row in way_rows(make_session(embeddings=[unseen]))}

    mapped = rows["memory-mapped and frozen"]
    assert (mapped["host_bytes"], mapped["exchanged_missing"]) == (None, "A loop.")
    assert rows["sharding"]["host_bytes"] == 0


def test_a_table_without_rows_has_ways_too() -> None:
    empty = make_embedding(rows=0, table_bytes=0)

    assert {row["device_bytes"] for row in way_rows(make_session(embeddings=[empty]))}
