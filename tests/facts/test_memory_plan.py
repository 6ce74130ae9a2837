"""Memory plans of tables whose bytes are added up by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.embeddings import MemoryPlan, plan_memory
from pipediag.reporters.words.memory_words import needed
from tests.factories import make_embedding, make_keras, make_loop, make_session

TABLE = 1000 * 64 * 4
READ = {"gradient": "sparse", "temporary_bytes": 10 * TABLE, "copied_on_lookup": True}
ADAM = {**READ, "gradient_spread": True, "temporary_peak_bytes": 2 * TABLE}
SGD = {**READ, "gradient_spread": False, "temporary_peak_bytes": 0, "slot_bytes": 0}


def plan(*tables: dict[str, Any], given: int | None = 16 * 10**9, **keras: Any) -> MemoryPlan:
    """Of a model with 1,000 bytes beside the tables, all trained, in a process on a CPU."""
    rows = [make_embedding(**table) for table in tables]
    sizes = {
        "variable_bytes": sum(one.table_bytes for one in rows) + 1000,
        "trainable_bytes": sum(one.table_bytes for one in rows) + 1000,
        "optimizer_bytes": sum(one.slot_bytes or 0 for one in rows) + 2000,
        **keras,
    }
    loop = make_loop(keras=make_keras(**sizes))
    found = plan_memory(make_session(embeddings=rows, loops=[loop], device_memory_bytes=given))
    assert found is not None
    return found


def test_a_step_with_adam_has_table_slots_and_the_temporaries_alive_at_once() -> None:
    found = plan(ADAM)

    assert found.tables[0].peak_bytes == 5 * TABLE
    assert found.other_bytes == 1000 + 2000 + 1000
    assert found.needed_bytes == 5 * TABLE + 4000
    assert found.lacking_bytes == 0


def test_a_lookup_copies_a_table_that_rows_are_scattered_into_unless_xla_compiles() -> None:
    assert plan(SGD).tables[0].peak_bytes == 2 * TABLE
    assert plan(SGD, jit_compile=True).tables[0].peak_bytes == TABLE


def test_copies_of_lookups_are_gone_when_updates_make_their_temporaries() -> None:
    found = plan(ADAM, SGD)
    assert found.needed_bytes == 5 * TABLE + TABLE + 4000


def test_what_the_device_lacks_is_said() -> None:
    found = plan(ADAM, given=TABLE)
    assert found.lacking_bytes == 4 * TABLE + 4000
    assert "too little" in needed(found)
    assert "too little" not in needed(plan(ADAM))


def test_on_a_cpu_without_a_size_there_is_nothing_to_hold_it_against() -> None:
    large = make_embedding(table_bytes=256_000_000)
    found = plan_memory(make_session(embeddings=[large]))
    assert found is not None
    assert found.device_bytes is None
    assert not found.given


def test_small_tables_have_a_plan_only_where_a_device_is_given() -> None:
    session = make_session(embeddings=[make_embedding()])
    assert plan_memory(session) is None
    assert plan_memory(session.model_copy(update={"device_memory_bytes": 10**9})) is not None


@pytest.mark.parametrize(
    ("what", "left"),
    [
        ("16-bit table", 5 * TABLE // 2),
        ("row-wise update", 3 * TABLE),
        ("SGD", TABLE),
        ("hashing", 5 * TABLE // 10),
        ("host memory", 0),
    ],
)
def test_each_change_alone_leaves_so_much_on_the_device(what: str, left: int) -> None:
    [found] = [one for one in plan(ADAM).alternatives if one.what == what]
    assert (found.device_bytes, found.saved_bytes) == (left, 5 * TABLE - left)


def test_a_frozen_table_has_no_other_update() -> None:
    frozen = {**ADAM, "trainable": False, "slot_bytes": 0}
    assert {one.what for one in plan(frozen).alternatives} == {
        "16-bit table",
        "hashing",
        "host memory",
    }
