from __future__ import annotations

from pipediag.facts.memory_plan import Given, plan_memory
from pipediag.reporters.words import way_words
from tests.factories import make_embedding, make_session
from tests.rules.embedding.sessions import make_ids
from tests.way_times import make_table_times, make_way_time


def test_a_ratio_is_shown_with_its_interval_and_never_alone() -> None:
    lacking = make_way_time(way="sgd", speedup=None, ci95=None, missing="No time.")
    (row,) = way_words.timed_rows(make_table_times(make_way_time(), lacking))

    assert (row.way, row.timed) == ("row-wise update", "step")
    assert row.ratio.split() == ["6.43x", "[6.31,", "6.57]"]
    assert (row.as_it_is.split(), row.this_way.split()) == (["66.4", "ms"], ["10.3", "ms"])


def test_a_line_has_steps_first_and_then_the_largest() -> None:
    slower = make_way_time(way="bfloat16", speedup=0.83, ci95=(0.8, 0.86))
    alone = make_way_time(way="8-bit rows", timed="look-up", speedup=9.0, ci95=(8.0, 10.0))
    line = way_words.in_a_line(make_table_times(alone, slower, make_way_time()))

    ways = [
        "row-wise update 6.43x",
        "bfloat16 0.83x",
        "8-bit rows (look-up alone, not trained) 9.00x",
    ]
    assert sorted(ways, key=line.index) == ways
    assert way_words.in_a_line(make_table_times(missing="No ids.")) == "No ids."


def test_what_was_timed_is_said_with_rows_batches_and_device() -> None:
    text = way_words.how(make_table_times(timed_rows=500_000))

    assert "on CPU:0, 500,000 rows, by the ids of 8 batches in turn" in text
    assert "by the ids of one batch" in way_words.how(make_table_times(batches=1))


def test_each_reason_comes_once_with_its_ways() -> None:
    times = make_table_times(
        make_way_time(way="sharding", speedup=None, missing="Not here."),
        make_way_time(way="sgd", speedup=None, missing="Not here."),
        make_way_time(way="8-bit rows", timed="look-up"),
        notes=["Half of it."],
    )

    other = make_table_times(make_way_time(way="sgd", speedup=None, missing="No."), layer="other")
    explained, *said = way_words.remarks([times, other])

    assert explained.startswith("embedding: A step is look-up, gradient and update")
    assert said == [
        "embedding: Half of it.",
        "embedding: 8-bit rows: It can't be trained: looked up alone.",
        "embedding: Not timed: sharding, sgd. Not here.",
        "other: Not timed: sgd. No.",
    ]
    assert "Half of it." in way_words.remarks([times])


def test_a_rate_is_asked_for_where_none_is_given() -> None:
    session = make_session(embeddings=[make_embedding(ids=make_ids())])
    without, given = plan_memory(session), plan_memory(session, Given(link_bytes_per_s=16 * 10**9))
    unseen = plan_memory(make_session(embeddings=[make_embedding(ids_missing="A loop.")]))

    (asked,) = way_words.exchange(without, without.tables)
    assert "plan-memory --session DIR --link 16GB/s`" in asked
    assert "16.0\N{NO-BREAK SPACE}GB/s, as given" in way_words.exchange(given, given.tables)[0]
    (reason,) = way_words.exchange(unseen, unseen.tables)
    assert reason == (
        "What sharding, host with hot rows on the device, memory-mapped and frozen would exchange "
        "for embedding in a step is not known: A loop."
    )


def test_what_one_way_lacks_is_not_said_of_the_others() -> None:
    """One batch tells what sharding sends, and not how often the next one hits."""
    one_batch = make_embedding(ids=make_ids(hot_percent_ahead=None))
    plan = plan_memory(make_session(embeddings=[one_batch]))
    unknown, _ = way_words.exchange(plan, plan.tables)

    assert unknown.startswith("What host with hot rows on the device would exchange for ")


def test_a_smaller_table_that_was_timed_says_its_rows() -> None:
    assert way_words.of_fewer_rows(make_table_times(timed_rows=500)) == ", 500 of 1,000 rows"
    assert way_words.of_fewer_rows(make_table_times()) == ""
    assert way_words.of_fewer_rows(make_table_times(timed_rows=None)) == ""
