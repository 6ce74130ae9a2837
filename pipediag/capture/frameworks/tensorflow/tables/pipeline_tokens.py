"""The tables of tokens in a pipeline, found behind the ids that its elements have."""

from __future__ import annotations

from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.mapped_tokens import (
    TokenIds,
    made_by_map,
    not_followed,
)
from pipediag.capture.frameworks.tensorflow.tables.read_tables import ReadTables
from pipediag.capture.runtime import Tokens, UntoldTokensError

_SAME_PARTS = frozenset(
    "_BatchDataset _ParallelBatchDataset _RebatchDataset _UnbatchDataset _DenseToRaggedDataset "
    "_PaddedBatchDataset".split()
)
"""Kinds that hand out each part of an element in its place, in another shape."""
_MAPS = frozenset({"_MapDataset", "_ParallelMapDataset"})


class PipelineTokens:
    """Of one pipeline, whose tables of tokens it holds once they are read."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._tables = ReadTables()

    def behind(self, part: int) -> Tokens | None:
        """What a table of tokens makes in a part of the dataset's elements, given by its place
        among their tensors; None where none makes it.

        Raises:
            UntoldTokensError: that can't be told.
        """
        found = _made(self._dataset, part)
        return None if found is None else self._tables.tokens_of(found)


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
