from __future__ import annotations

import click
import pytest

from pipediag.cli.transfer_rate import TransferRate


@pytest.mark.parametrize(
    ("text", "rate"), [("16GB/s", 16 * 10**9), ("900 MiB / S", 900 * 2**20), ("7/s", 7)]
)
def test_rates_as_people_write_them(text: str, rate: int) -> None:
    assert TransferRate().convert(text, None, None) == rate


@pytest.mark.parametrize("text", ["16GB", "16GB/min", "s", "16GB/"])
def test_what_is_no_rate_says_how_one_is_written(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 16GB/s"):
        TransferRate().convert(text, None, None)


@pytest.mark.parametrize(
    "text", ["100Gb/s", "100 gb /s", "10Gib/s", "8b/s", "16GBit/s", "1Mbits/s"]
)
def test_bits_are_not_read_as_bytes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="of bits, an eighth"):
        TransferRate().convert(text, None, None)


def test_a_size_that_is_none_is_said_as_for_a_size() -> None:
    with pytest.raises(click.BadParameter, match="is no size"):
        TransferRate().convert("16XB/s", None, None)
