from __future__ import annotations

import click
import pytest

from pipediag.cli.byte_size import ByteSize


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16GB", 16 * 10**9),
        ("16GiB", 16 * 2**30),
        ("512MB", 512 * 10**6),
        ("1.5 gib", 3 * 2**29),
        ("2TB", 2 * 10**12),
        ("4096", 4096),
        ("7b", 7),
    ],
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert ByteSize().convert(text, None, None) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "16 GBit", "-1GB", "1e9", "16G", "1" * 40, "inf", "\u0661GB"]
)
def test_what_is_no_size_says_how_one_is_written(text: str) -> None:
    with pytest.raises(click.BadParameter, match="Write a number and a unit, such as 16GB"):
        ByteSize().convert(text, None, None)


def test_no_memory_at_all_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="at least one byte"):
        ByteSize().convert("0GB", None, None)
