"""Ways out of a table's memory, reckoned by hand: 1,000 rows of 64 float32, as Adam trains them."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.table_ways import Shares, ways_out
from pipediag.session.memory_plan import WayOut
from tests.factories import make_embedding
from tests.rules.embedding.sessions import make_ids

ROW = 64 * 4
TABLE = 1000 * ROW
ADAM: dict[str, Any] = {
    "gradient": "sparse",
    "gradient_spread": True,
    "copied_on_lookup": True,
    "temporary_peak_bytes": 2 * TABLE,
}


def ways(*, compiled: bool = False, **table: Any) -> dict[str, WayOut]:
    found = ways_out(make_embedding(**{**ADAM, **table}), Shares(4, 10), compiled=compiled)
    return {way.name: way for way in found}


@pytest.mark.parametrize(
    ("name", "device_bytes"),
    [
        ("bfloat16", 5 * TABLE // 2),
        ("8-bit rows", 1000 * (64 + 4)),
        ("row-wise update", 3 * TABLE + TABLE),
        ("sgd", TABLE + TABLE),
        ("hashing", 5 * TABLE // 10),
        ("quotient-remainder", 5 * 110 * ROW),
        ("sharding", 5 * TABLE // 4),
        ("host with hot rows on the device", 10 * ROW),
        ("memory-mapped and frozen", 0),
    ],
)
def test_bytes_on_the_device(name: str, device_bytes: int) -> None:
    way = ways()[name]

    assert way.device_bytes == device_bytes
    assert way.saved_bytes == 5 * TABLE - device_bytes


def test_under_xla_rows_are_updated_without_a_copy_of_the_table() -> None:
    found = ways(compiled=True)

    assert found["row-wise update"].device_bytes == 3 * TABLE
    assert found["sgd"].device_bytes == TABLE


def test_what_is_exchanged_comes_from_the_ids() -> None:
    """400 different ids a step, of 1,000 lookups; the hot rows answer 70 %."""
    found = ways(ids=make_ids(hot_percent_ahead=70.0))

    # Three of four rows are on another device; a vector and its gradient, and an id.
    assert found["sharding"].exchanged_bytes_per_step == 300 * (2 * ROW + 4)
    hot = found["host with hot rows on the device"]
    assert (hot.hit_percent, hot.exchanged_bytes_per_step) == (70.0, 300 * 2 * ROW)
    assert hot.host_bytes == 5 * TABLE
    mapped = found["memory-mapped and frozen"]
    assert (mapped.host_bytes, mapped.exchanged_bytes_per_step) == (900 * ROW, 400 * ROW)


def test_no_more_rows_are_fetched_than_a_step_has() -> None:
    hot = ways(ids=make_ids(hot_percent_ahead=10.0))["host with hot rows on the device"]

    assert hot.exchanged_bytes_per_step == 400 * 2 * ROW


def test_without_ids_nothing_is_said_of_the_exchange() -> None:
    found = ways()

    for way in found.values():
        assert way.exchanged_bytes_per_step is way.hit_percent is None
    assert found["memory-mapped and frozen"].host_bytes is None
    assert found["host with hot rows on the device"].host_bytes == 5 * TABLE


def test_a_frozen_table_has_no_other_update() -> None:
    frozen = ways(trainable=False, slot_bytes=0, gradient=None, temporary_peak_bytes=0)

    assert not {"row-wise update", "sgd"} & set(frozen)


def test_a_dense_gradient_makes_every_update_dense() -> None:
    assert not {"row-wise update", "sgd"} & set(ways(gradient="dense"))


def test_what_is_narrow_already_gets_no_narrower() -> None:
    half = ways(dtype="bfloat16", table_bytes=TABLE // 2)
    bytes_ = ways(dtype="int8", table_bytes=TABLE // 4)

    assert "bfloat16" not in half
    assert not {"bfloat16", "8-bit rows"} & set(bytes_)


def test_a_table_of_one_row_is_not_divided_by_hashing() -> None:
    tiny = ways(rows=1, table_bytes=ROW)

    assert not {"hashing", "quotient-remainder"} & set(tiny)


def test_what_is_exchanged_is_not_known_of_some_lookups_alone() -> None:
    found = ways(ids=make_ids(hot_percent_ahead=70.0, incomplete="1 of 2 lookups"))
    hot = found["host with hot rows on the device"]

    assert (hot.hit_percent, hot.exchanged_bytes_per_step) == (None, None)
    assert found["sharding"].exchanged_bytes_per_step is None
    assert found["memory-mapped and frozen"].host_bytes is None
