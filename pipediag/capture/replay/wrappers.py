"""Datasets that TensorFlow makes around others without a public call of the script."""

from __future__ import annotations

from typing import Any

from pipediag.capture.replay.refusal import NotReplayableError


def wrapped_again(dataset: Any, inputs: list[Any]) -> Any:
    """The same wrapper around another dataset.

    Raises:
        NotReplayableError: a kind of dataset that can't be built from the outside.
    """
    from tensorflow.python.data.ops import dataset_ops

    name = type(dataset).__name__
    make = _WRAPPERS.get(name)
    if make is None or len(inputs) != 1:
        raise NotReplayableError(
            f"The elements pass through a {name.strip('_')}, which Pipediag can't build again."
        )
    return make(dataset_ops, dataset, inputs[0])


def _options(_: Any, dataset: Any, given: Any) -> Any:
    return given.with_options(dataset.options())


def _prefetch(_: Any, dataset: Any, given: Any) -> Any:
    return given.prefetch(dataset._buffer_size)


def _restructured(dataset_ops: Any, dataset: Any, given: Any) -> Any:
    return dataset_ops._RestructuredDataset(given, dataset.element_spec)


def _without_assertion(_: Any, _dataset: Any, given: Any) -> Any:
    # A trial takes a number of steps of its own; a filled cache goes on for ever.
    return given


def _copied(_: Any, dataset: Any, given: Any) -> Any:
    return type(dataset)(given, dataset._target_device, dataset._source_device_string)


_WRAPPERS = {
    "_OptionsDataset": _options,
    "_PrefetchDataset": _prefetch,
    "_RestructuredDataset": _restructured,
    "_AssertCardinalityDataset": _without_assertion,
    "_CopyToDeviceDataset": _copied,
}
