"""The tables of tokens in a pipeline, found behind the ids that its elements have."""

from __future__ import annotations

from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.mapped_tokens import (
    TokenIds,
    made_by_map,
    not_followed,
)
from pipediag.capture.frameworks.tensorflow.tables.token_tables import (
    TokenTable,
    stands_for_padding,
    stands_for_unknown,
    table_size,
)
from pipediag.capture.step_tables import Tokens, UntoldTokensError

_MOST_TOKENS = 1_000_000
"""Own choice: to read a table of as many takes about half a second."""
_SAME_PARTS = frozenset(
    "_BatchDataset _ParallelBatchDataset _RebatchDataset _UnbatchDataset _DenseToRaggedDataset "
    "_PaddedBatchDataset".split()
)
"""Kinds that hand out each part of an element in its place, in another shape."""
_MAPS = frozenset({"_MapDataset", "_ParallelMapDataset"})


def tokens_behind(dataset: Any, part: int) -> Tokens | None:
    """What a table of tokens makes in a part of the dataset's elements, given by its place among
    their tensors; None where none makes it.

    Raises:
        UntoldTokensError: that can't be told.
    """
    found = _made(dataset, part)
    return None if found is None else _tokens_of(found)


def _tokens_of(found: TokenIds) -> Tokens:
    """With what stands in the table."""
    size = table_size(found.handle)
    if size > _MOST_TOKENS:
        raise UntoldTokensError(
            f"Tokens are looked up in the pipeline, in a table of {size} of them: too many to see "
            "which ids stand for unknown ones alone."
        )
    table = TokenTable(found.handle, found.types)
    for number in sorted(found.unknown):
        if number in found.added:
            raise _both(number, "padding")
        if not all(map(stands_for_unknown, table.tokens_with(number))):
            raise _both(number, "a known one")
    return Tokens(found.unknown, _zero_is_a_token(found, table))


def _both(number: int, what: str) -> UntoldTokensError:
    return UntoldTokensError(
        f"Tokens are looked up in the pipeline, where id {number} stands for an unknown one and "
        f"for {what} alike."
    )


def _zero_is_a_token(found: TokenIds, table: TokenTable) -> bool | None:
    """A table of the script's own may have a name for padding that nobody knows."""
    if 0 in found.unknown:
        return True
    return None if not all(map(stands_for_padding, table.tokens_with(0))) else False


def _made(dataset: Any, part: int) -> TokenIds | None:
    from tensorflow.python.data.ops import dataset_ops

    padding: frozenset[int] = frozenset()
    while not isinstance(dataset, dataset_ops.DatasetSource):
        kind, inputs = type(dataset).__name__, list(dataset._inputs())
        if kind in _MAPS:
            made = made_by_map(dataset, part)
            if isinstance(made, TokenIds):
                return made.beside(padding)
            part, padding = made.part, padding | made.added
        elif kind == "_ZipDataset":
            dataset, part = _zipped(inputs, part)
            continue
        elif kind == "_PaddedBatchDataset":
            padding |= _padding(dataset, part)
        elif kind not in _SAME_PARTS and not isinstance(
            dataset, dataset_ops.UnaryUnchangedStructureDataset
        ):
            raise not_followed(kind.removeprefix("_").removesuffix("Dataset"))
        (dataset,) = inputs
    return None


def _zipped(inputs: list[Any], part: int) -> tuple[Any, int]:
    """The one of several datasets that a part comes from, and its place there."""
    for dataset in inputs:
        count = _parts(dataset)
        if part < count:
            return dataset, part
        part -= count
    raise UntoldTokensError("The pipeline's `Zip` has fewer parts than the step is handed.")


def _parts(dataset: Any) -> int:
    from tensorflow.python.data.util import structure

    return len(structure.get_flat_tensor_types(dataset.element_spec))


def _padding(dataset: Any, part: int) -> frozenset[int]:
    """What fills up a part."""
    from tensorflow.python.data.util import nest
    from tensorflow.python.framework import tensor_util

    given = nest.flatten(dataset._padding_values)
    if len(given) != _parts(dataset):
        raise not_followed("PaddedBatch")
    value = tensor_util.constant_value(given[part])
    ids = value is not None and value.dtype.kind in "iu"
    return frozenset({int(value)}) if ids else frozenset()
