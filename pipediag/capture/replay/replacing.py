"""Operations that a change replaces by another kind with the same function or the same files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pipediag.capture.replay.bucketing import bucketed
from pipediag.capture.replay.graph import Make, Node, given_arguments
from pipediag.capture.replay.pydataset import read_by_workers
from pipediag.capture.replay.refusal import NotReplayableError, said
from pipediag.vocabulary import Scalar


def replacement(node: Node, kind: str, parameters: dict[str, Scalar]) -> Make:
    """How to build the other kind of operation in a node's place.

    Raises:
        NotReplayableError: no way from the one kind to the other.
    """
    operation = node.operation
    assert operation is not None
    make = _REPLACEMENTS.get((operation.kind, kind))
    if make is None:
        raise NotReplayableError(f"Pipediag can't replace {said(operation)} by {kind}.")
    return partial(make, node, parameters)


def _interleaved(node: Node, parameters: dict[str, Scalar], inputs: list[Any]) -> Any:
    assert node.call is not None
    given = given_arguments(node.call, inputs, node.parameters).arguments
    (dataset,) = inputs
    return dataset.interleave(given["map_func"], name=given.get("name"), **parameters)


def _called_at_once(node: Node, parameters: dict[str, Scalar], inputs: list[Any]) -> Any:
    """The function is called by those who read the elements, several of them at a time.

    A plain interleave calls it for one element after the other, whatever its number of calls.
    """
    from tensorflow.python.data.ops import dataset_ops

    assert node.call is not None
    given = given_arguments(node.call, inputs, node.parameters).arguments
    make: Callable[..., Any] = given["map_func"]

    def one(*element: Any) -> Any:
        return dataset_ops.DatasetV2.from_tensors(element).flat_map(make)

    (dataset,) = inputs
    return dataset.interleave(one, name=given.get("name"), **parameters)


def _side_by_side(node: Node, parameters: dict[str, Scalar], _inputs: list[Any]) -> Any:
    """Copies of one source, each with an iterator of its own, an element of each in turn."""
    from tensorflow.python.data.ops import dataset_ops

    source, copies = node.dataset, parameters["cycle_length"]
    return dataset_ops.DatasetV2.range(copies).interleave(lambda _: source, **parameters)


def _interleaved_reader(node: Node, parameters: dict[str, Scalar], inputs: list[Any]) -> Any:
    """One reader for each file, several of them at a time."""
    assert node.call is not None
    given = given_arguments(node.call, inputs, node.parameters).arguments
    name = given.pop("name", None)
    filenames = given.pop("filenames")
    given.pop("num_parallel_reads", None)
    make: Callable[..., Any] = node.call.function

    def read(filename: Any) -> Any:
        return make(filename, **given)

    return filenames.interleave(read, name=name, **parameters)


_Replacing = Callable[[Node, dict[str, Scalar], list[Any]], Any]
_REPLACEMENTS: dict[tuple[str, str], _Replacing] = {
    ("flat_map", "interleave"): _interleaved,
    ("flat_map", "parallel_flat_map"): _called_at_once,
    ("interleave", "parallel_flat_map"): _called_at_once,
    ("TFRecordDataset", "interleave"): _interleaved_reader,
    ("TextLineDataset", "interleave"): _interleaved_reader,
    ("FixedLengthRecordDataset", "interleave"): _interleaved_reader,
    ("from_generator", "interleave"): _side_by_side,
    ("from_generator", "PyDataset"): read_by_workers,
    ("batch", "bucket_by_sequence_length"): bucketed,
    ("padded_batch", "bucket_by_sequence_length"): bucketed,
}
