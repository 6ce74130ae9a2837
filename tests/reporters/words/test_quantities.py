from __future__ import annotations

import pytest

from pipediag.reporters.words import quantities


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, quantities.NOTHING),
        (0, "0"),
        (32.0, "32"),
        (1234567.0, "1,234,567"),
        (1234.5, "1,234"),
        (11.52, "11.5"),
        (0.123, "0.12"),
        (0.000123, "0.00012"),
    ],
)
def test_numbers(value: float | None, shown: str) -> None:
    assert quantities.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(10.0, "10.0 ms"), (900.0, "900 ms"), (12_345.0, "12.3 s"), (7_200_000.0, "2.00 h")],
)
def test_durations_change_their_unit(value: float, shown: str) -> None:
    assert quantities.milliseconds(value).replace("\xa0", " ") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0 ms"), (0.033, "33.0 µs"), (0.9, "900 µs"), (1.0, "1.00 ms"), (12_345.0, "12.3 s")],
)
def test_short_durations_are_microseconds(value: float, shown: str) -> None:
    assert quantities.duration(value).replace("\xa0", " ") == shown


def test_a_thousand_microseconds_are_a_millisecond() -> None:
    assert quantities.microseconds(999.0) == "999\xa0µs"
    assert quantities.microseconds(1000.0) == "1.00\xa0ms"


def test_one_thing_has_no_plural() -> None:
    assert quantities.counted(1, "kernel") == "1 kernel"
    assert quantities.counted(1584, "gap") == "1,584 gaps"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 B"), (1840, "1.80 KiB"), (61 * 2**20, "61 MiB"), (2**50, "1,024 TiB")],
)
def test_bytes(value: float, shown: str) -> None:
    assert quantities.byte_count(value).replace("\xa0", " ") == shown


def test_small_times_do_not_become_nothing() -> None:
    assert quantities.decimal(0.001) == "<0.01"
    assert quantities.decimal(0.0) == "0.00"


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.04, "0.0 %"), (0.0, "0.0 %"), (-0.06, "-0.1 %"), (12.345, "12.3 %")]
)
def test_nothing_has_no_sign(value: float, shown: str) -> None:
    assert quantities.percent(value).replace("\xa0", " ") == shown


def test_units_stay_with_their_numbers() -> None:
    assert quantities.bind_units("20 % in 3 ms of 4 GiB, 5 apples") == (
        "20\xa0% in 3\xa0ms of 4\xa0GiB, 5 apples"
    )
