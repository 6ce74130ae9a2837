"""What ids the function of a map makes of tokens, read from its graph.

TensorFlow looks a token up with an id for those that are not in the table, and a layer of Keras or
a `StaticVocabularyTable` puts hash buckets in place of that one.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.lookups import same_ids_before
from pipediag.capture.frameworks.tensorflow.tables.token_tables import table_size
from pipediag.capture.frameworks.tensorflow.tables.unfolded import (
    At,
    Unfolded,
    UnreadableGraphError,
)
from pipediag.capture.runtime import UntoldTokensError
from pipediag.tensorflow_names import LOOKUP

_MOST_BUCKETS = 100_000
"""Own choice: all are written down while batches are looked at."""
_COMPARES = ("Equal", "NotEqual")
_HASHES = ("StringToHashBucketFast", "StringToHashBucketStrong", "StringToHashBucket")


@dataclass(frozen=True)
class TokenIds:
    """Ids that are looked up in one table of tokens."""

    handle: Any
    types: tuple[Any, Any]
    """Of tokens and ids in the table."""
    unknown: frozenset[int]
    """Those of tokens that are not in it."""
    added: frozenset[int] = frozenset()
    """Those of padding and of masks."""

    def beside(self, others: Set[int]) -> TokenIds:
        """The same among ids that stand for no token."""
        return replace(self, added=self.added | others)


@dataclass(frozen=True)
class GivenIds:
    """Ids that a function has from the element that it is given."""

    part: int
    added: frozenset[int] = frozenset()
    """Those that it puts among them."""

    def beside(self, others: Set[int]) -> GivenIds:
        """The same among others."""
        return replace(self, added=self.added | others)


Made = TokenIds | GivenIds


def not_followed(through: str) -> UntoldTokensError:
    """Ids are lost at an operation, or a kind of dataset."""
    return UntoldTokensError(
        "Tokens are looked up in the pipeline, and which ids stand for unknown ones is lost on "
        f"their way through its `{through}`."
    )


def made_by_map(dataset: Any, part: int) -> Made:
    """What makes a part of what a map hands out: a table of tokens, or else what it is given.

    Raises:
        UntoldTokensError: neither can be told.
    """
    (wrapper,) = dataset._functions()
    graph = wrapper.function.graph
    try:
        step = Unfolded(graph)
    except UnreadableGraphError as lack:
        raise not_followed("map") from lack
    return _Function(step, len(graph.inputs) - len(graph.captures)).made(
        At(step.root, graph.outputs[part])
    )


class _Function:
    """Of one map, which is given so many tensors of an element."""

    def __init__(self, step: Unfolded, parts: int) -> None:
        self._step = step
        self._parts = parts

    def made(self, at: At) -> Made:
        at = self._plain(at)
        op = at.op
        place = at.frame.positions.get(op.name) if at.frame is self._step.root else None
        if place is not None and place < self._parts:
            return GivenIds(place)
        if op.type in LOOKUP:
            return self._looked_up(at)
        if op.type in ("SelectV2", "Select"):
            return self._chosen(at)
        if op.type in ("Pad", "PadV2"):
            return self.made(at.inputs()[0]).beside({self._padding(at)})
        if op.type == "RaggedTensorToTensor":
            return self.made(at.inputs()[1]).beside({self._padding(at)})
        raise not_followed(op.type)

    def _padding(self, at: At) -> int:
        """What an operation is given to fill up with; zeros without."""
        filled_with = at.inputs()[2:]
        value = self._constant(filled_with[0]) if filled_with else 0
        if value is None:
            raise not_followed(at.op.type)
        return value

    def _looked_up(self, at: At) -> TokenIds:
        table, _, default = at.inputs()
        handle, unknown = self._step.captured(table), self._constant(default)
        if handle is None or unknown is None:
            raise not_followed(at.op.type)
        types = at.op.get_attr("Tin"), at.op.get_attr("Tout")
        return TokenIds(handle, types, frozenset({unknown}))

    def _chosen(self, at: At) -> TokenIds:
        """Of `where(a == b, other ids, ids)`, as masks and hash buckets are put in."""
        compared, same, otherwise = (self._step.source(one) for one in at.inputs())
        if compared.op.type not in _COMPARES:
            raise not_followed(at.op.type)
        if compared.op.type == "NotEqual":
            same, otherwise = otherwise, same
        found = self.made(otherwise)
        if isinstance(found, GivenIds):
            raise not_followed(at.op.type)
        put_in = self._constant(same)
        if not self._compares_unknown(compared, found):
            if put_in is None:
                raise not_followed(at.op.type)
            return found.beside({put_in})
        unknown = {put_in} if put_in is not None else self._buckets(same, found)
        if unknown is None:
            raise not_followed(at.op.type)
        return replace(found, unknown=frozenset(unknown))

    def _compares_unknown(self, compared: At, found: TokenIds) -> bool:
        """Whether it looks for the id of unknown tokens, and not for a token."""
        numbers = [self._constant(one) for one in compared.inputs()]
        others = [
            one for one, number in zip(compared.inputs(), numbers, strict=True) if number is None
        ]
        if len(others) != 1 or not found.unknown.issubset(numbers):
            return False
        try:
            return isinstance(self.made(others[0]), TokenIds)
        except UntoldTokensError:
            return False

    def _buckets(self, at: At, found: TokenIds) -> range | None:
        """The ids in `hash(token) + first`."""
        if at.op.type not in ("AddV2", "Add"):
            return None
        hashed, beginning = map(self._plain, at.inputs())
        count = self._bucket_count(hashed)
        if beginning.op.type.startswith("LookupTableSize"):
            first = table_size(found.handle) if self._is_of(beginning, found) else None
        else:
            first = self._constant(beginning)
        if count is None or first is None or count > _MOST_BUCKETS:
            return None
        return range(first, first + count)

    def _bucket_count(self, at: At) -> int | None:
        if at.op.type in _HASHES:
            return int(at.op.get_attr("num_buckets"))
        return self._constant(at.inputs()[1]) if at.op.type == "FloorMod" else None

    def _is_of(self, size: At, found: TokenIds) -> bool:
        return self._step.captured(size.inputs()[0]) is found.handle

    def _plain(self, at: At) -> At:
        at = self._step.source(at)
        while (before := same_ids_before(self._step, at)) is not None:
            at = self._step.source(before)
        return at

    def _constant(self, at: At) -> int | None:
        """A single integer, where the graph or what it has of outside tells it."""
        from tensorflow.python.framework import tensor_util

        at = self._plain(at)
        if not at.tensor.dtype.is_integer:
            return None
        captured = self._step.captured(at)
        value = tensor_util.constant_value(at.tensor if captured is None else captured)
        return int(value.item()) if value is not None and value.size == 1 else None
