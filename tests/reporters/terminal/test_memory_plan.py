from __future__ import annotations

import io

from rich.console import Console

from pipediag.facts.memory_plan import Given, plan_memory
from pipediag.reporters.terminal.memory_plan import render
from pipediag.reporters.words.quantities import NOTHING
from pipediag.session.memory_plan import MemoryPlan
from tests.factories import make_embedding, make_session
from tests.reporters.sessions import HOSTILE
from tests.rules.embedding.sessions import make_ids
from tests.way_times import make_way_time, timed_session


def shown(plan: MemoryPlan, *, verbose: bool = False, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    render(plan, console, verbose=verbose)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def planned(*layers: str, given: Given | None = None) -> MemoryPlan:
    tables = [
        make_embedding(layer=layer, ids=make_ids(), gradient="sparse", temporary_peak_bytes=512_000)
        for layer in layers
    ]
    return plan_memory(make_session(embeddings=tables), given)


def test_what_is_needed_comes_first_with_what_is_there() -> None:
    first, *_ = shown(planned("items", given=Given(device_bytes=2**20))).splitlines()

    assert first.startswith("Training takes 1.22 MiB at its peak, in a step; ")
    assert "the device has 1 MiB, as given" in first
    assert "too little" in shown(planned("items", given=Given(device_bytes=2**20)))


def test_a_row_for_each_part_and_each_way() -> None:
    text = shown(planned("items"))

    (row,) = [line for line in text.splitlines() if "items 1,000 x 64" in line]
    assert row.split()[-9:] == f"250 KiB 500 KiB 500 KiB {NOTHING} 750 KiB".split()
    for way in ("bfloat16", "8-bit rows", "hashing", "sharding", "25.0 %"):
        assert way in text
    assert text.count("share a row, by a hash") == 1


def test_the_ways_of_the_largest_tables_alone_unless_asked_for() -> None:
    plan = planned("a", "b", "c", "d")

    assert "Ways out for d" not in shown(plan)
    assert "Ways out for d" in shown(plan, verbose=True)


def test_times_stand_below_the_bytes_with_what_has_none() -> None:
    lacking = make_way_time(
        way="sharding", timed=None, speedup=None, ci95=None, missing="Not here."
    )
    text = shown(plan_memory(timed_session(make_way_time(), lacking)))

    (row,) = [line for line in text.splitlines() if "6.43x" in line]
    assert row.split() == "row-wise update step 66.4 ms 10.3 ms 6.43x [6.31, 6.57]".split()
    assert "Not timed: sharding. Not here." in text
    assert "on the link" not in text


def test_tables_without_times_say_how_they_get_some_once() -> None:
    text = " ".join(shown(planned("a", "b")).split())

    assert text.count("--time-ways") == 1
    assert "Without times: a, b." in text


def test_a_run_without_tables() -> None:
    text = shown(plan_memory(make_session(embeddings=[])))

    assert "no embedding table was seen" in text
    assert "Ways out" not in text


def test_a_table_may_be_called_anything() -> None:
    text = shown(planned(HOSTILE), width=60)

    assert "\x1b" not in text
    assert "\u2028" not in text
