from __future__ import annotations

from rich.console import Console, Group

from pipediag.reporters.terminal.summary import (
    cost_table,
    embedding_table,
)
from pipediag.reporters.words.quantities import percent
from pipediag.session.embeddings import Embedding, FusedParts, PartName
from tests.factories import make_embedding, make_embedding_cost
from tests.rules.sessions import make_ids


def shown(tables: list[Embedding], limit: int) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(Group(*embedding_table(tables, limit)))
    return captured.get()


def test_a_row_says_what_a_step_does_to_a_table() -> None:
    table = make_embedding(update="dense", ids=make_ids())
    text = shown([table], 3)

    assert "bytes with slots" in text
    row = text.splitlines()[-2]
    for part in ("embedding", "1,000 x 64", "750\N{NO-BREAK SPACE}KiB", "400 of 1,000"):
        assert part in row
    assert "whole table" in row


def test_gradient_padding_and_hot_rows_are_told_of_each_table() -> None:
    ids = make_ids(hot_percent_ahead=70.0, zero_percent=25.0)
    table = make_embedding(gradient="sparse", gradient_spread=True, ids=ids, mask_zero=True)
    tables = [table, make_embedding()]
    known = (
        f"embedding: gradient sparse, made dense; hottest 1 % {percent(70.0)}; "
        f"padding {percent(25.0)}"
    )

    assert known in shown(tables, 2)
    assert "embedding:" not in shown(tables[1:], 2)


def test_ids_that_spoil_results_are_told_under_the_table() -> None:
    table = make_embedding(layer="words", ids=make_ids(outside=400))
    said = shown([table], 1).splitlines()[-1]
    assert said.strip() == f"words: {percent(5.0)} of the ids have no row"


def test_lookups_that_were_not_told_are_named() -> None:
    table = make_embedding(layer="words", ids=make_ids(incomplete="1 of 2 lookups was not told."))
    said = shown([table], 1).splitlines()[-1]
    assert said.strip() == "words: 1 of 2 lookups was not told."


def test_more_tables_than_there_is_room_for() -> None:
    text = shown([make_embedding(layer=name) for name in "abc"], 1)

    assert "2 more in the report" in text
    assert len(text.splitlines()) == 3


def test_without_tables_or_room_nothing_is_said() -> None:
    assert shown([], 3).strip() == shown([make_embedding()], 0).strip() == ""


def test_the_parts_of_a_step_the_largest_first() -> None:
    cost = make_embedding_cost(("update", 40.0), ("rest", 8.0), ("lookup", 1.5), ("copy", 0.5))
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(Group(*cost_table(cost, 1)))
    title, first, second, third = captured.get().strip().splitlines()

    assert title == "Compute of a step, 50.0\N{NO-BREAK SPACE}ms, by part; 1 smaller in the report"
    assert first.split() == ["optimizer's", "update", "40.0", "ms", "80.0", "%", "embedding"]
    assert second.split() == ["rest", "of", "the", "model", "8.00", "ms", "16.0", "%"]
    assert third.split()[0] == "lookup"


def test_what_xla_fused_stands_below_the_parts() -> None:
    fused = FusedParts(parts=[PartName(part="lookup", layer="words")], ms=2.0, percent=20.0)
    cost = make_embedding_cost(("rest", 8.0), ("not_told", 2.0), fused=[fused])
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(Group(*cost_table(cost, 1)))

    assert captured.get().splitlines()[-1].startswith("  Fused by XLA and not told apart, 20 %: ")


def test_without_parts_or_room_nothing_is_said_of_them() -> None:
    assert list(cost_table(None, 3)) == []
    assert list(cost_table(make_embedding_cost(("rest", 1.0)), 0)) == []
