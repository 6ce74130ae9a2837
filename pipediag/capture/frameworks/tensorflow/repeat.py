"""The differential phase: the consumer alone, on one batch handed out again and again."""

from __future__ import annotations

from typing import Any


def repeated(batch: Any, element_spec: Any) -> Any:
    """An iterator that hands out `batch` for ever at next to no cost, with the original's spec.

    The same spec keeps a tf.function that takes the iterator from being traced again. Nothing runs
    beside the consumer: default optimisations and autotune are off, so no thread prefetches.
    """
    from tensorflow.python.data.ops import dataset_ops, options

    choices = options.Options()
    choices.experimental_optimization.apply_default_optimizations = False
    choices.autotune.enabled = False
    once = dataset_ops.DatasetV2.from_tensors(batch)
    dataset = once.repeat().with_options(choices)
    return unobserved_iterator(dataset, element_spec)


def unobserved_iterator(dataset: Any, element_spec: Any) -> Any:
    """An iterator that the hooks take for none of the script's."""
    from tensorflow.python.data.ops import dataset_ops, iterator_ops

    return iterator_ops.OwnedIterator(dataset_ops._RestructuredDataset(dataset, element_spec))
