from __future__ import annotations

from pipediag.reporters.words import embedding_rows as words
from pipediag.reporters.words.quantities import NO_BREAK, NOTHING, percent
from tests.factories import make_embedding
from tests.rules.sessions import make_ids


def test_gradient_and_update() -> None:
    spread = make_embedding(gradient="sparse", update="dense", gradient_spread=True)
    rows = make_embedding(gradient="sparse", update="sparse", gradient_spread=False)
    frozen = make_embedding(trainable=False)

    assert [words.gradient(one) for one in (spread, rows, frozen)] == [
        "sparse, made dense", "sparse", "frozen"
    ]  # fmt: skip
    assert words.gradient(make_embedding()) == NOTHING
    assert [words.update(one) for one in (spread, rows, frozen)] == [
        "whole table", "its rows", NOTHING
    ]  # fmt: skip


def test_rows_of_lookups() -> None:
    assert words.rows_touched(make_embedding(ids=make_ids())) == "400 of 1,000"
    assert words.rows_touched(make_embedding()) == NOTHING


def test_padding_is_only_what_model_or_pipeline_call_so() -> None:
    ids = make_ids(zero_percent=62.0)
    for_no_token = make_ids(zero_percent=62.0, zero_is_a_token=False)

    assert words.padding(make_embedding(ids=ids, mask_zero=True)) == f"62.0{NO_BREAK}%"
    assert words.padding(make_embedding(ids=for_no_token)) == f"62.0{NO_BREAK}%"
    assert words.padding(make_embedding(ids=ids)) == NOTHING
    assert words.padding(make_embedding(mask_zero=True)) == NOTHING


def test_hot_rows_are_those_of_batches_to_come_where_that_is_known() -> None:
    assert words.hot(make_ids()) == f"25.0{NO_BREAK}%"
    assert words.hot(make_ids(hot_percent_ahead=None)) == f"30.0{NO_BREAK}%"
    assert words.hot(None) == NOTHING


def test_which_batches_were_looked_at() -> None:
    assert words.looked_at(make_ids()) == "8 batches, 41 to 48"
    assert words.looked_at(make_ids(batches=1, last_batch=41)) == "1 batch, 41 to 41"


def test_what_spoils_results_is_said_beside_the_table() -> None:
    ids = make_ids(outside=400, changed=4_000, cast_through="bfloat16", zeros_within=80)
    assert words.wrong(make_embedding(ids=ids, mask_zero=True)) == [
        f"{percent(5.0)} of the ids have no row",
        f"{percent(50.0)} of the ids are rounded by bfloat16",
        "id 0 is masked, and is a token",
    ]
    assert words.wrong(make_embedding(ids=ids)) == words.wrong(make_embedding(ids=ids))[:2]


def test_of_ids_as_they_should_be_nothing_is_said() -> None:
    assert words.wrong(make_embedding(ids=make_ids(), mask_zero=True)) == []
    assert words.wrong(make_embedding()) == []
