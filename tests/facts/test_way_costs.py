from __future__ import annotations

from pipediag.facts.memory_plan import Given, plan_memory
from pipediag.facts.table_ways import Shares
from pipediag.session.memory_plan import WayOut
from pipediag.session.model import Session
from pipediag.session.way_times import NOT_ASKED
from tests.factories import make_embedding, make_session
from tests.rules.embedding.sessions import make_ids
from tests.way_times import make_way_time, timed_session

ROW = 64 * 4


def ways_of(session: Session, link: int | None = None) -> dict[str, WayOut]:
    plan = plan_memory(session, Given(link_bytes_per_s=link))
    assert plan.link_bytes_per_s == link
    return {way.name: way for way in plan.tables[0].ways}


def test_what_crosses_the_link_takes_at_least_its_bytes_by_the_rate() -> None:
    """400 different ids a step, of which three quarters are elsewhere: 300 rows there and back."""
    found = ways_of(make_session(embeddings=[make_embedding(ids=make_ids())]), link=1_000_000)

    assert found["sharding"].link_ms == 300 * (2 * ROW + 4) / 1e3
    assert found["memory-mapped and frozen"].link_ms == 400 * ROW / 1e3
    assert found["sharding"].link_missing is None
    assert found["hashing"].link_ms is found["hashing"].link_missing is None


def test_no_rate_is_assumed_where_none_is_given() -> None:
    way = ways_of(make_session(embeddings=[make_embedding(ids=make_ids())]))["sharding"]

    assert way.link_ms is None
    assert way.link_missing is not None
    assert "`pipediag plan-memory --session DIR --link 16GB/s`" in way.link_missing


def test_without_ids_bytes_and_time_are_missing_for_the_same_reason() -> None:
    session = make_session(embeddings=[make_embedding(ids_missing="A loop.")])
    way = ways_of(session, link=1)["host with hot rows on the device"]

    assert (way.exchanged_missing, way.link_missing, way.link_ms) == ("A loop.", "A loop.", None)


def test_one_batch_tells_no_hits_and_all_else() -> None:
    session = make_session(embeddings=[make_embedding(ids=make_ids(hot_percent_ahead=None))])
    found = ways_of(session, link=1)

    missing = found["host with hot rows on the device"].link_missing
    assert missing is not None
    assert "One batch" in missing
    assert found["sharding"].link_ms


def test_a_run_whose_tables_were_not_timed_says_how_they_are() -> None:
    (table,) = plan_memory(make_session(embeddings=[make_embedding()])).tables

    assert (table.times, table.times_missing) == (None, NOT_ASKED)


def test_times_go_with_their_table() -> None:
    session = timed_session(make_way_time())
    (table,) = plan_memory(session).tables
    (other,) = plan_memory(timed_session(make_way_time(), variable="another")).tables

    assert table.times is not None
    assert table.times.ways == [make_way_time()]
    assert table.times_missing is None
    assert other.times is None


def test_hashing_was_timed_for_as_many_ids_a_row_as_it_says() -> None:
    session = timed_session(make_way_time(way="hashing"), make_way_time())
    (table,) = plan_memory(session, shares=Shares(buckets=20)).tables

    assert table.times is not None
    hashing, row_wise = table.times.ways
    assert (hashing.speedup, row_wise.speedup) == (None, 6.43)
    assert hashing.missing == "It was timed with 10 ids a row, and the plan is of 20."
