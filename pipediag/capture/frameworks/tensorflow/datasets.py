"""What a tf.data dataset and its batches tell of themselves."""

from __future__ import annotations

import math
import sys
from typing import Any

from pipediag.capture.runtime import DatasetFacts
from pipediag.vocabulary import Scalar

# Reading this alias of `threading` makes TensorFlow warn the user.
_DEPRECATED_OPTION = "experimental_threading"


def facts_of(dataset: Any) -> DatasetFacts:
    """What it tells of itself; a strategy's dataset is known by the one that it distributes."""
    original = getattr(dataset, "_original_dataset", dataset)
    strategy = getattr(dataset, "_strategy", None)
    replicas = strategy.num_replicas_in_sync if strategy is not None else 1
    name = type(strategy).__name__ if strategy is not None else None
    spec = str(dataset.element_spec)
    if not hasattr(original, "_inputs"):
        return DatasetFacts(spec, replicas, strategy=name)
    return DatasetFacts(spec, replicas, original, _options_of(original), name)


def _options_of(dataset: Any) -> dict[str, Scalar]:
    """The options that the user set, flattened: `threading.private_threadpool_size`, ..."""
    found: dict[str, Scalar] = {}
    options = _known_options(dataset)
    for name in type(options).__dict__:
        if name.startswith("_") or name == _DEPRECATED_OPTION:
            continue
        value = getattr(options, name)
        if isinstance(value, bool | int | float | str):
            found[name] = value
        elif "tensorflow" in type(value).__module__:
            found.update(_nested(name, value))
    return found


def _known_options(dataset: Any) -> Any:
    """Of a dataset that a graph makes, what it was given in Python: asked itself, while the graph
    is built, it would make TensorFlow warn the user."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    with ops.init_scope():
        if context.executing_eagerly() and isinstance(dataset._variant_tensor, ops.EagerTensor):
            return dataset.options()
    return dataset._options_attr


def _nested(prefix: str, options: Any) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for name in type(options).__dict__:
        value = getattr(options, name, None)
        if not name.startswith("_") and isinstance(value, bool | int | float | str):
            found[f"{prefix.removeprefix('experimental_')}.{name}"] = value
    return found


_ROWS, _LENGTH, _STRING = 1024, 512, 64
"""What is taken where a spec leaves it open: rows, each other length, bytes of a string. Own
choice, on the large side."""


def batch_bytes(element_spec: Any) -> int:
    """About what a batch takes, by its spec; of all replicas together."""
    nest = sys.modules["tensorflow.python.util.nest"]
    total = 0
    for spec in nest.flatten(element_spec, expand_composites=True):
        if not hasattr(spec, "shape"):
            continue  # a None
        sizes = spec.shape.as_list() if spec.shape.rank is not None else [None, None]
        known = [
            size if size is not None else _LENGTH if place else _ROWS
            for place, size in enumerate(sizes)
        ]
        total += math.prod(known) * (spec.dtype.size or _STRING)
    return total


def batch_rows(batch: Any) -> int | None:
    """Rows of a batch: the leading dimension of its first tensor, or None."""
    nest = sys.modules["tensorflow.python.util.nest"]
    for component in nest.flatten(batch):
        shape = getattr(component, "shape", None)
        if shape is not None and len(shape) > 0 and shape[0] is not None:
            return int(shape[0])
    return None
