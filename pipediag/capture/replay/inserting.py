"""Operations that a change adds to the pipeline."""

from __future__ import annotations

from typing import Any

from pipediag.capture.process import free_memory_bytes
from pipediag.capture.replay.elements import first_elements, read_through, tensor_bytes
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.vocabulary import Scalar

_METHODS = frozenset(
    "batch cache enumerate ignore_errors padded_batch prefetch ragged_batch rebatch repeat shard "
    "shuffle skip take unbatch".split()
)
_MEASURED_ELEMENTS = 8
_SHARE_OF_MEMORY = 0.5
"""Of what is free: the script goes on beside the cache."""


def inserted(dataset: Any, kind: str, parameters: dict[str, Scalar]) -> Any:
    """The dataset with a new operation behind it.

    Raises:
        NotReplayableError: a kind that can't be added.
    """
    if kind == "prefetch_to_device":
        return _on_device(dataset, **parameters)
    if kind == "cache" and "elements" in parameters:
        return _filled_cache(dataset, **parameters)
    if kind not in _METHODS:
        raise NotReplayableError(f"Pipediag can't add an operation of the kind {kind}.")
    return getattr(dataset, kind)(**parameters)


def _on_device(dataset: Any, device: Scalar, buffer_size: Scalar = None) -> Any:
    from tensorflow.python.data.experimental.ops import prefetching_ops
    from tensorflow.python.framework import config, device_spec

    # TensorFlow itself would silently take another device.
    wanted = device_spec.DeviceSpecV2.from_string(str(device))
    if (wanted.device_index or 0) >= len(config.list_logical_devices(wanted.device_type)):
        raise NotReplayableError(f"There is no device {device} here.")
    return dataset.apply(prefetching_ops.prefetch_to_device(device, buffer_size))


def _filled_cache(dataset: Any, elements: Scalar) -> Any:
    """A cache that holds its elements already, handed out again and again."""
    assert isinstance(elements, int)
    _refuse_what_does_not_fit(dataset, elements)
    return filled_cache(dataset.take(elements))


def filled_cache(dataset: Any) -> Any:
    """All elements of a dataset, from memory, again and again."""
    cached = dataset.cache()
    read_through(cached)
    return cached.repeat()


def most_elements_in_memory(dataset: Any) -> int:
    """How many elements of a dataset a cache may hold; -1 where that is not known."""
    free = free_memory_bytes()
    return -1 if free is None else int(free * _SHARE_OF_MEMORY / max(1, _element_bytes(dataset)))


def _refuse_what_does_not_fit(dataset: Any, count: int) -> None:
    free = free_memory_bytes()
    held = count * _element_bytes(dataset)
    if free is not None and held > free * _SHARE_OF_MEMORY:
        raise NotReplayableError(
            f"The cache would hold about {held / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free."
        )


def _element_bytes(dataset: Any) -> int:
    elements = first_elements(dataset, _MEASURED_ELEMENTS).elements
    if not elements:
        raise NotReplayableError("There are no elements to cache.")
    return sum(map(tensor_bytes, elements)) // len(elements)
