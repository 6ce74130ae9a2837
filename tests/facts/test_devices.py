"""Devices, the machine, and the cost and memory of embedding tables."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.devices import block_start_ms, held_up
from pipediag.facts.embeddings import MemoryPlan, part_ms, parts_ms, plan_memory
from pipediag.facts.machine import cores_allowed, pool_size, pool_threads
from pipediag.reporters.words.embeddings import memory_needed
from pipediag.session.embeddings import NO_PROGRAM, EmbeddingCost, FusedParts, PartName
from pipediag.session.model import Session
from tests.factories import make_embedding, make_embedding_cost, make_keras, make_loop, make_session
from tests.records import make_environment, make_operation, make_pipeline
from tests.reporters import trial_sessions
from tests.rules.sessions import gap, gpu


def test_a_gap_of_several_causes_counts_for_each_with_its_part() -> None:
    both = gap("input", 10.0, causes_ms={"input": 6.0, "python": 4.0})
    device = gpu(gaps=[both, gap("sync", 3.0)])

    assert held_up(device, "python") == [(both, 4.0)]
    assert held_up(device, "copy") == []


def test_a_gap_of_which_only_the_largest_cause_is_known_counts_for_that() -> None:
    plain = gap("input", 10.0, causes_ms={})
    device = gpu(gaps=[plain])

    assert held_up(device, "input") == [(plain, 10.0)]
    assert held_up(device, "python") == []


@pytest.mark.parametrize(
    ("start_ms", "since_began_ms", "expected"),
    [(6000.0, 500.0, 6500.0), (None, 500.0, None), (6000.0, None, None)],
)
def test_a_block_stands_on_the_clock_of_the_windows(
    start_ms: float | None, since_began_ms: float | None, expected: float | None
) -> None:
    run = trial_sessions.make_run(start_ms=start_ms)
    block = run.blocks[0].model_copy(update={"since_began_ms": since_began_ms})

    assert block_start_ms(run, block) == expected


@pytest.mark.parametrize(("quota", "allowed"), [(None, 8.0), (2.5, 2.5), (16.0, 8.0)])
def test_a_quota_beyond_the_cores_allows_no_more_of_them(
    quota: float | None, allowed: float
) -> None:
    assert cores_allowed(make_environment(cores=8, cpu_quota=quota)) == allowed


def test_an_option_sets_the_pools_size() -> None:
    options = {"threading.private_threadpool_size": 16}
    session = make_session(pipeline=make_pipeline(options=options))
    assert pool_threads(session) == 16
    assert pool_size(session, make_operation("map")) == 16


def session(cost: EmbeddingCost | None, percent: float = 0.0) -> Session:
    """One in which XLA fused so much of the lookup with the rest of the model."""
    if cost is not None and percent:
        names = [PartName(part="lookup", layer="embedding"), PartName(part="rest")]
        fused = [FusedParts(parts=names, ms=percent, percent=percent)]
        cost = cost.model_copy(update={"fused": fused})
    return make_session(embedding_cost=cost, embeddings=[make_embedding()])


def cost() -> EmbeddingCost:
    return make_embedding_cost(("lookup", 2.0), ("update", 30.0), ("rest", 68.0))


def test_parts_of_a_table_add_up() -> None:
    told = session(cost())

    assert parts_ms(told, told.embeddings, ("lookup", "update")) == 32.0
    assert parts_ms(told, told.embeddings, ("copy",)) == 0.0
    assert parts_ms(told, [make_embedding(layer="other")], ("update",)) is None
    assert part_ms(told, "rest") == 68.0
    assert part_ms(session(None), "rest") is None


@pytest.mark.parametrize(("percent", "hidden"), [(0.4, False), (5.0, True)])
def test_a_part_that_xla_fused_with_others_is_not_known(percent: float, hidden: bool) -> None:
    told = session(cost(), percent)

    assert parts_ms(told, told.embeddings, ("lookup",)) == (None if hidden else 2.0)
    assert part_ms(told, "rest") == (None if hidden else 68.0)
    assert parts_ms(told, told.embeddings, ("update",)) == 30.0
    assert part_ms(told, "vocabulary") == 0.0


@pytest.mark.parametrize(("not_told", "hidden"), [(5.4, False), (15.0, True)])
def test_no_part_is_known_where_programs_that_were_not_kept_may_hold_it(
    not_told: float, hidden: bool
) -> None:
    """Five of what is not told was fused, in programs that were kept."""
    names = [PartName(part="copy", layer="other"), PartName(part="rest")]
    found = make_embedding_cost(
        ("lookup", 100.0 - not_told),
        ("not_told", not_told),
        fused=[FusedParts(parts=names, ms=5.0, percent=5.0)],
        notes=[NO_PROGRAM],
    )
    told = session(found)

    assert parts_ms(told, told.embeddings, ("update",)) == (None if hidden else 0.0)
    assert part_ms(told, "vocabulary") == (None if hidden else 0.0)
    kept = session(found.model_copy(update={"notes": []}))
    assert parts_ms(kept, kept.embeddings, ("update",)) == 0.0


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


def test_what_the_device_lacks_is_said() -> None:
    found = plan(ADAM, given=TABLE)
    assert found.lacking_bytes == 4 * TABLE + 4000
    assert "too little" in memory_needed(found)
    assert "too little" not in memory_needed(plan(ADAM))


def test_small_tables_have_a_plan_only_where_a_device_is_given() -> None:
    session = make_session(embeddings=[make_embedding()])
    assert plan_memory(session) is None
    assert plan_memory(session.model_copy(update={"device_memory_bytes": 10**9})) is not None
