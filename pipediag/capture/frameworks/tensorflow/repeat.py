"""The differential phase: the consumer alone, on one batch handed out again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def repeated(batch: Any, element_spec: Any) -> Any:
    """An iterator that hands out `batch` for ever at next to no cost, with the original's spec.

    The same spec keeps a tf.function that takes the iterator from being traced again. Nothing runs
    beside the consumer: default optimisations and autotune are off, so no thread prefetches.
    """
    return unobserved_iterator(plain(_once(batch).repeat()), element_spec)


def handed_once(batches: Sequence[Any], element_spec: Any) -> Any:
    """An iterator that hands out `batches` and is at its end, with the original's spec."""
    return unobserved_iterator(plain(one_after_the_other(batches)), element_spec)


def not_handed_once(iterator: Any, element_spec: Any) -> str | None:
    """Why a batch of that iterator would not be the same from another one."""
    from tensorflow.python.framework import sparse_tensor, tensor
    from tensorflow.python.ops.ragged import ragged_tensor
    from tensorflow.python.util import nest

    kinds = (tensor.TensorSpec, ragged_tensor.RaggedTensorSpec, sparse_tensor.SparseTensorSpec)
    if not all(isinstance(one, kinds) for one in nest.flatten(element_spec)):
        return "A batch holds other things than tensors."
    resource = getattr(iterator, "_iterator_resource", None)
    device = getattr(resource, "device", None) or ""
    return None if "CPU" in device else "Batches are handed out on another device than the CPU."


def one_after_the_other(elements: Sequence[Any]) -> Any:
    """A dataset of these elements, whose shapes may differ."""
    dataset = _once(elements[0])
    for element in elements[1:]:
        dataset = dataset.concatenate(_once(element))
    return dataset


def _once(batch: Any) -> Any:
    from tensorflow.python.data.ops import dataset_ops

    return dataset_ops.DatasetV2.from_tensors(batch)


def plain(dataset: Any) -> Any:
    """The same, with no thread that works ahead."""
    from tensorflow.python.data.ops import options

    choices = options.Options()
    choices.experimental_optimization.apply_default_optimizations = False
    choices.autotune.enabled = False
    return dataset.with_options(choices)


def unobserved_iterator(dataset: Any, element_spec: Any) -> Any:
    """An iterator that the hooks take for none of the script's."""
    from tensorflow.python.data.ops import dataset_ops, iterator_ops

    return iterator_ops.OwnedIterator(dataset_ops._RestructuredDataset(dataset, element_spec))
