from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from pipediag.reporters.terminal.share_bar import ShareBar


def row(percent: float, width: int) -> str:
    table = Table.grid(padding=(0, 1))
    for no_wrap in (False, True):
        table.add_column(no_wrap=no_wrap)
    table.add_row(ShareBar(percent), f"{percent:.0f} percent")
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip("\n")


@pytest.mark.parametrize(
    ("percent", "width", "bar"),
    [
        (50, 80, "█" * 10 + "·" * 10),
        (100, 80, "█" * 20),
        (0, 80, "·" * 20),
        (50, 21, "█" * 5 + "·" * 5),
    ],
)
def test_it_is_as_long_as_there_is_room_for(percent: float, width: int, bar: str) -> None:
    assert row(percent, width).split(" ")[0] == bar
