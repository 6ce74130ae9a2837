"""Plans of tables whose bytes are reckoned by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.memory_plan import Given, plan_memory
from pipediag.reporters.words import memory_words
from pipediag.session.host import GpuUse
from pipediag.session.memory_plan import MemoryPlan, Room
from tests import factories
from tests.factories import make_embedding, make_keras, make_loop, make_session

TABLE = 1000 * 64 * 4
READ = {"gradient": "sparse", "temporary_bytes": 10 * TABLE, "copied_on_lookup": True}
ADAM = {**READ, "gradient_spread": True, "temporary_peak_bytes": 2 * TABLE}
SGD = {**READ, "gradient_spread": False, "temporary_peak_bytes": 0, "slot_bytes": 0}


def plan(*tables: dict[str, Any], given: Given | None = None, **keras: Any) -> MemoryPlan:
    """Of a model with 1,000 bytes beside the tables, all trained, in a process on a CPU."""
    rows = [make_embedding(**table) for table in tables]
    sizes = {
        "variable_bytes": sum(one.table_bytes for one in rows) + 1000,
        "trainable_bytes": sum(one.table_bytes for one in rows) + 1000,
        "optimizer_bytes": sum(one.slot_bytes or 0 for one in rows) + 2000,
        **keras,
    }
    loop = make_loop(keras=make_keras(**sizes))
    return plan_memory(make_session(embeddings=rows, loops=[loop]), given)


def test_a_step_with_adam_has_table_slots_and_the_temporaries_alive_at_once() -> None:
    found = plan(ADAM)

    assert found.training_bytes == TABLE + 2 * TABLE + 2 * TABLE + 1000 + 2000 + 1000
    assert found.building_bytes == TABLE + 1000 + 2 * TABLE
    assert found.peak_bytes == found.training_bytes
    assert found.checkpoint_bytes == 3 * TABLE + 3000
    assert found.tables[0].copy_bytes == 0
    assert found.tables[0].peak_bytes == 5 * TABLE


def test_slots_of_one_shape_share_what_they_begin_with_until_the_first_step_wrote_them() -> None:
    """One constant for both moments of both tables, beside the copies that the writes make."""
    adam = {**ADAM, "slots": 2}
    alone, twice = plan(adam), plan(adam, adam)

    assert alone.first_step_bytes == alone.training_bytes + TABLE
    assert alone.peak_bytes == alone.first_step_bytes
    assert twice.first_step_bytes == twice.training_bytes + TABLE
    assert memory_words.peak(alone).endswith("in its first step")
    assert "up to" in memory_words.together(alone)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(
            {**SGD, "slots": 1, "slot_bytes": TABLE}, id="one slot is the constant itself"
        ),
        pytest.param({**ADAM, "slots": 2, "slot_bytes": 5000}, id="slots of another shape"),
        pytest.param({**ADAM, "slots": 2, "trainable": False}, id="never written"),
    ],
)
def test_slots_that_share_nothing_with_others(table: dict[str, Any]) -> None:
    found = plan(table)

    assert found.first_step_bytes == found.training_bytes
    assert "up to" not in memory_words.together(found)


def test_the_row_wise_update_copies_no_more_in_its_first_step_than_its_lookup_does_later() -> None:
    lazy = {**SGD, "slots": 2, "slot_bytes": 2 * TABLE}
    found = plan(lazy, variable_bytes=TABLE, trainable_bytes=TABLE, optimizer_bytes=2 * TABLE)

    assert found.first_step_bytes == found.training_bytes == 4 * TABLE


def test_building_is_the_peak_where_a_step_makes_little() -> None:
    found = plan(SGD, optimizer_bytes=0)

    assert found.tables[0].copy_bytes == TABLE
    assert found.training_bytes == TABLE + 1000 + TABLE
    assert found.peak_bytes == found.building_bytes == 3 * TABLE + 1000


def test_the_copy_of_a_lookup_is_gone_when_the_update_begins() -> None:
    adagrad = {**SGD, "slot_bytes": TABLE, "temporary_peak_bytes": TABLE * 3 // 2}

    assert plan(adagrad).tables[0].peak_bytes == 2 * TABLE + TABLE * 3 // 2


def test_under_xla_a_lookup_copies_nothing() -> None:
    found = plan(SGD, jit_compile=True)

    assert found.tables[0].copy_bytes == 0
    assert any("XLA" in one for one in found.warnings)


def test_tables_add_up_and_building_takes_the_largest_ones_values() -> None:
    small = {**ADAM, "table_bytes": 1000, "slot_bytes": 2000, "temporary_peak_bytes": 500}
    found = plan(ADAM, small)

    assert found.training_bytes == 5 * TABLE + 3500 + 4000
    assert found.building_bytes == 3 * TABLE + 1000 + 1000


def test_what_is_no_table_is_said_to_be_missing() -> None:
    unknown = plan(ADAM, variable_bytes=None)
    loop = make_loop(keras=None)
    own = plan_memory(make_session(embeddings=[make_embedding(**ADAM)], loops=[loop]))

    assert unknown.rest is own.rest is None
    assert "could not say" in str(unknown.rest_missing)
    assert "No Keras model" in str(own.rest_missing)
    assert own.training_bytes == 5 * TABLE


def test_tables_that_are_no_variables_of_the_model_leave_no_negative_rest() -> None:
    found = plan(ADAM, variable_bytes=10, trainable_bytes=10, optimizer_bytes=10)

    assert found.rest is not None
    assert found.rest.variable_bytes == found.rest.slot_bytes == found.rest.gradient_bytes == 0


def test_without_a_known_peak_all_temporaries_count() -> None:
    older = {**ADAM, "temporary_peak_bytes": None}

    assert plan(older).tables[0].temporary_bytes == 10 * TABLE


def test_a_step_that_was_not_read_is_named() -> None:
    (warning,) = plan({"layer": "items"}).warnings

    assert "items" in warning
    assert "not in the sums" in warning


@pytest.mark.parametrize(("table_bytes", "warned"), [(2**31 - 1, False), (2**31, True)])
def test_values_that_no_constant_can_hold(table_bytes: int, warned: bool) -> None:
    assert (
        any("2 GiB" in one for one in plan({**SGD, "table_bytes": table_bytes}).warnings) is warned
    )


def rooms(given: Given | None = None, **host: Any) -> list[Room]:
    session = make_session(embeddings=[make_embedding(**ADAM)])
    seen = factories.make_host(**host) if host else session.host
    return plan_memory(session.model_copy(update={"host": seen}), given).rooms


def test_without_a_device_the_host_is_what_has_to_hold_it() -> None:
    (room,) = rooms()

    assert (room.where, room.basis, room.fits) == ("host", "measured", True)


def test_what_is_given_goes_before_what_was_measured() -> None:
    gpus = [
        GpuUse(
            name=str(size), utilisation_percent=None, memory_used_bytes=0, memory_total_bytes=size
        )
        for size in (10**7, 10**6)
    ]
    (measured,) = rooms(gpus=gpus)
    device, host = rooms(Given(device_bytes=10**8, host_bytes=10**9), gpus=gpus)

    assert (measured.where, measured.bytes, measured.basis) == ("device", 10**6, "measured")
    assert not measured.fits
    assert (device.bytes, device.basis, device.fits) == (10**8, "given", True)
    assert (host.where, host.bytes) == ("host", 10**9)
