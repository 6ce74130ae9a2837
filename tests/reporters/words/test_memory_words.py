from __future__ import annotations

from pipediag.facts.memory_plan import Given, plan_memory
from pipediag.reporters.words import memory_words
from pipediag.reporters.words.quantities import NO_BREAK
from tests.factories import make_embedding, make_session


def test_a_run_with_a_large_table_has_a_plan() -> None:
    large = make_session(embeddings=[make_embedding(table_bytes=10_000_000)])
    plan = memory_words.plan_of(large)

    assert plan is not None
    assert memory_words.peak(plan).startswith("Training takes ")
    small = make_session(embeddings=[make_embedding(table_bytes=9_999_999)])
    assert memory_words.plan_of(small) is None
    assert memory_words.plan_of(make_session()) is None


def test_a_memory_that_is_too_small_says_by_how_much() -> None:
    session = make_session(embeddings=[make_embedding(table_bytes=2 << 20, slot_bytes=0)])
    (room,) = plan_memory(session, Given(device_bytes=1 << 20)).rooms

    assert memory_words.room(room).startswith(f"the device has 1{NO_BREAK}MiB, as given: ")
    assert memory_words.room(room).endswith(" too little")
