"""What stands in a table of tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

_NAMES_OF_UNKNOWN = frozenset("oov unk unknown".split())
_NAMES_OF_PADDING = frozenset("blank mask null pad padding".split())
_AROUND_NAMES = "<>[]{}()_-| "
"""As in `<unk>`, `[PAD]` and `__oov__`."""


def table_size(handle: Any) -> int:
    """Its tokens."""
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import gen_lookup_ops

    with ops.init_scope(), ops.device("/CPU:0"):
        return int(gen_lookup_ops.lookup_table_size_v2(handle))


@dataclass(frozen=True)
class TokenTable:
    """A table as it was when it was read, as NumPy has it."""

    tokens: Any
    ids: Any
    """Of each token."""

    def tokens_with(self, numbers: Set[int]) -> Iterator[tuple[int, Any]]:
        """Those that have one of these ids, with it, the smallest first."""
        np: Any = sys.modules["numpy"]
        # All in one pass: there may be 100,000 of them, and a million tokens to go through.
        (having,) = np.isin(self.ids, sorted(numbers)).nonzero()
        for place in having[np.argsort(self.ids[having], kind="stable")]:
            yield int(self.ids[place]), self.tokens[place]


def exported_table(handle: Any, types: tuple[Any, Any]) -> TokenTable:
    """As it is now, with the types of its tokens and ids."""
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import gen_lookup_ops

    with ops.init_scope(), ops.device("/CPU:0"):
        tokens, ids = gen_lookup_ops.lookup_table_export_v2(handle, *types)
    return TokenTable(tokens.numpy().ravel(), ids.numpy().ravel())


def stands_for_unknown(token: Any) -> bool:
    """Whether it is what people write for a token that they do not know."""
    return _name(token) in _NAMES_OF_UNKNOWN


def stands_for_padding(token: Any) -> bool:
    """Whether it is what people write where no token is."""
    return token == b"" or _name(token) in _NAMES_OF_PADDING


def _name(token: Any) -> str | None:
    if not isinstance(token, bytes):
        return None
    return token.decode("utf-8", errors="replace").strip(_AROUND_NAMES).lower()
