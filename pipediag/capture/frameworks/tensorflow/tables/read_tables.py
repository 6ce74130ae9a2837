"""What tables of tokens tell of the ids that a pipeline makes, each of them read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.mapped_tokens import TokenIds
from pipediag.capture.frameworks.tensorflow.tables.token_tables import (
    TokenTable,
    exported_table,
    stands_for_padding,
    stands_for_unknown,
    table_size,
)
from pipediag.capture.runtime import Tokens, UntoldTokensError

_MOST_TOKENS = 1_000_000
"""Own choice: to read a table of as many takes about half a second."""


class ReadTables:
    """Holds all of them, and so is let go of once every lookup was asked for."""

    def __init__(
        self,
        export: Callable[[Any, tuple[Any, Any]], TokenTable] = exported_table,
        size: Callable[[Any], int] = table_size,
    ) -> None:
        self._export = export
        self._size = size
        self._tables: dict[int, tuple[Any, TokenTable]] = {}
        """With their handles, by whose ids they are found: as long as they are here, no other
        object has these."""
        self._told: dict[tuple[int, frozenset[int]], Tokens] = {}
        """By the table and the ids of tokens that are not in it."""

    def tokens_of(self, found: TokenIds) -> Tokens:
        """With what stands in the table.

        Raises:
            UntoldTokensError: an id has several meanings, or the table is too large.
        """
        if padding := found.unknown & found.added:
            raise _both(min(padding), "padding")
        key = id(found.handle), found.unknown
        if key not in self._told:
            self._told[key] = _told_by(self._read(found), found)
        return self._told[key]

    def _read(self, found: TokenIds) -> TokenTable:
        key = id(found.handle)
        if key not in self._tables:
            size = self._size(found.handle)
            if size > _MOST_TOKENS:
                raise UntoldTokensError(
                    f"Tokens are looked up in the pipeline, in a table of {size} of them: too many "
                    "to see which ids stand for unknown ones alone."
                )
            self._tables[key] = found.handle, self._export(found.handle, found.types)
        return self._tables[key][1]


def _told_by(table: TokenTable, found: TokenIds) -> Tokens:
    for number, token in table.tokens_with(found.unknown):
        if not stands_for_unknown(token):
            raise _both(number, "a known one")
    return Tokens(found.unknown, _zero_is_a_token(table, found))


def _both(number: int, what: str) -> UntoldTokensError:
    return UntoldTokensError(
        f"Tokens are looked up in the pipeline, where id {number} stands for an unknown one and "
        f"for {what} alike."
    )


def _zero_is_a_token(table: TokenTable, found: TokenIds) -> bool | None:
    """A table of the script's own may have a name for padding that nobody knows."""
    if 0 in found.unknown:
        return True
    with_zero = (token for _, token in table.tokens_with({0}))
    return None if not all(map(stands_for_padding, with_zero)) else False
