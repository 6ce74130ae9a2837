"""What stands in a table of tokens."""

from __future__ import annotations

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


class TokenTable:
    """A table as it is now, with the types of its tokens and ids."""

    def __init__(self, handle: Any, types: tuple[Any, Any]) -> None:
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_lookup_ops

        with ops.init_scope(), ops.device("/CPU:0"):
            tokens, ids = gen_lookup_ops.lookup_table_export_v2(handle, *types)
        self._tokens = tokens.numpy().ravel()
        self._ids = ids.numpy().ravel()

    def tokens_with(self, number: int) -> list[Any]:
        """Those that have this id."""
        return list(self._tokens[self._ids == number])


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
