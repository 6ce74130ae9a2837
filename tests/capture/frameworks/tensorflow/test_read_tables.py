"""Tables of tokens that stand behind several parts of a pipeline, and what is told of their ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipediag.capture.frameworks.tensorflow.tables.mapped_tokens import TokenIds
from pipediag.capture.frameworks.tensorflow.tables.read_tables import ReadTables
from pipediag.capture.frameworks.tensorflow.tables.token_tables import TokenTable
from pipediag.capture.runtime import UntoldTokensError


class Handle:
    """Of a table with these tokens, whose ids begin with a number."""

    def __init__(self, *tokens: Any, first: int = 0) -> None:
        self.tokens = np.array(tokens, object)
        self.ids = np.arange(first, first + len(tokens), dtype=np.int64)


class Exports:
    """Tells how often a table was read."""

    def __init__(self) -> None:
        self.read: list[Handle] = []
        self.tables = ReadTables(self._export, lambda handle: len(handle.ids))

    def _export(self, handle: Handle, _: tuple[Any, Any]) -> TokenTable:
        self.read.append(handle)
        return TokenTable(handle.tokens, handle.ids)


def ids(handle: Handle, *unknown: int, added: frozenset[int] = frozenset()) -> TokenIds:
    return TokenIds(handle, ("string", "int64"), frozenset(unknown), added)


def why_untold(found: TokenIds) -> str:
    with pytest.raises(UntoldTokensError) as lack:
        Exports().tables.tokens_of(found)
    return str(lack.value)


def test_a_table_behind_several_features_is_read_once() -> None:
    exports, shared = Exports(), Handle(b"a", b"b", first=1)
    told = [exports.tables.tokens_of(ids(shared, 3)) for _ in range(26)]
    padded = exports.tables.tokens_of(ids(shared, 3, added=frozenset({0})))
    other = exports.tables.tokens_of(ids(shared, 4, 5))

    assert exports.read == [shared]
    assert {one.out_of_vocabulary for one in [*told, padded]} == {frozenset({3})}
    assert other.out_of_vocabulary == {4, 5}


def test_tables_are_told_apart() -> None:
    exports = Exports()
    exports.tables.tokens_of(ids(Handle(b"a"), 7))
    with pytest.raises(UntoldTokensError, match="id 7 stands for an unknown one and for a known"):
        exports.tables.tokens_of(ids(Handle(b"a", first=7), 7))

    assert len(exports.read) == 2


def test_a_table_that_told_nothing_is_not_read_again() -> None:
    exports, table = Exports(), Handle(b"a", b"b")
    for _ in range(3):
        with pytest.raises(UntoldTokensError):
            exports.tables.tokens_of(ids(table, 1))

    assert exports.read == [table]


def test_a_table_that_is_too_large_is_not_read() -> None:
    table = Handle()
    table.ids = np.zeros(1_000_001, np.int64)
    exports = Exports()
    with pytest.raises(UntoldTokensError, match="a table of 1000001 of them: too many"):
        exports.tables.tokens_of(ids(table, 1))

    assert exports.read == []


def test_of_many_buckets_the_smallest_with_a_known_token_is_named() -> None:
    table = Handle(b"a", b"b", b"c", b"[UNK]", first=50_000)
    table.ids = table.ids[[2, 1, 3, 0]]
    buckets = range(50_000, 150_000)

    assert "id 50000 stands for an unknown one and for a known one" in why_untold(
        ids(Handle(b"a", first=50_000), *buckets)
    )
    assert "id 50001 stands" in why_untold(ids(table, *buckets[1:]))
    told = Exports().tables.tokens_of(ids(Handle(b"a", b"b"), *buckets))
    assert told.out_of_vocabulary == frozenset(buckets)


def test_names_of_unknown_tokens_are_no_known_ones() -> None:
    marked = Handle(b"a", b"<unk>", b"oov")

    assert Exports().tables.tokens_of(ids(marked, 1, 2)).out_of_vocabulary == {1, 2}
    assert "id 1 stands" in why_untold(ids(Handle(5, 6), 1))


def test_ids_of_padding_are_no_unknown_ones() -> None:
    assert "id 2 stands for an unknown one and for padding alike" in why_untold(
        ids(Handle(b"a"), 1, 2, 3, added=frozenset({2, 3}))
    )


@pytest.mark.parametrize(
    ("table", "unknown", "zero"),
    [
        (Handle(b"a", first=1), 0, True),
        (Handle(b"a", first=1), 2, False),
        (Handle(b"", b"a"), 2, False),
        (Handle(b"<pad>", b"a"), 2, False),
        (Handle(b"a", b"b"), 2, None),
    ],
)
def test_whether_zero_is_a_token(table: Handle, unknown: int, zero: bool | None) -> None:
    assert Exports().tables.tokens_of(ids(table, unknown)).zero_is_a_token is zero
