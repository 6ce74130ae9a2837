"""A strategy's iterators: a batch for all replicas drawn ahead, and handed out by another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.repeat import one_after_the_other, plain
from pipediag.capture.signals import let_pass

_PER_REPLICA = "PerReplica"

_SEVERAL_WORKERS = "Batches are spread over several workers, or by a way of the strategy's own."
_NOT_DENSE = "A batch holds other things than dense tensors."
_OTHER_TYPE = "No other iterator can stand in for that of the strategy."


class Distributing(threading.local):
    """Whether a thread is inside a distributed iterator, which asks others for its batches."""

    inside = False


class DistributedIterators:
    """Those of one worker with a batch for each replica, as MirroredStrategy makes them."""

    def __init__(
        self, kind: type, advance: Callable[[Any], Any], distributing: Distributing
    ) -> None:
        self._kind = kind
        self._advance = advance
        self._distributing = distributing

    def has(self, iterator: Any) -> bool:
        """Whether it is a strategy's."""
        return isinstance(iterator, self._kind)

    def pull(self, iterator: Any) -> Any:
        """The next batch, of which no hook is told."""
        return self._unwatched(lambda: self._advance(iterator))

    def handed_once(self, batches: Sequence[Any], iterator: Any) -> Any:
        """Another iterator that hands each replica its part of `batches`, and is at its end.

        It is of the same type, so that a tf.function that takes it is not traced again.
        """
        return self._unwatched(lambda: _handed_once(batches, iterator))

    def not_handed_once(self, iterator: Any) -> str | None:
        """Why a batch of that iterator would not be the same from another one.

        One is made, without a batch: where that fails, none of the script's must be drawn.
        """
        try:
            return _shape_lack(iterator) or self._unwatched(lambda: _rehearsed(iterator))
        except Exception as error:
            let_pass(error)
            return f"{_OTHER_TYPE.removesuffix('.')}: {type(error).__name__}."

    def _unwatched(self, work: Callable[[], Any]) -> Any:
        before, self._distributing.inside = self._distributing.inside, True
        try:
            return work()
        finally:
            self._distributing.inside = before


def _shape_lack(iterator: Any) -> str | None:
    workers: list[Any] = list(getattr(iterator, "_iterators", None) or ())
    if len(workers) != 1 or getattr(iterator, "_replica_order", None) is not None:
        return _SEVERAL_WORKERS
    devices: Any = getattr(workers[0], "_iterator", None)
    if not hasattr(devices, "_device_iterators") or not hasattr(iterator, "_type_spec"):
        return _SEVERAL_WORKERS
    from tensorflow.python.framework import tensor
    from tensorflow.python.util import nest

    specs = nest.flatten(devices.element_spec)
    return None if all(isinstance(one, tensor.TensorSpec) for one in specs) else _NOT_DENSE


def parts_by_replica(batch: Any) -> list[list[Any]]:
    """The tensors of a batch that each replica is given; one list of a batch that is not spread."""
    from tensorflow.python.util import nest

    leaves = nest.flatten(batch)
    replicas = max((len(one.values) for one in leaves if _is_spread(one)), default=1)
    return [
        nest.flatten(
            [one.values[replica] if _is_spread(one) else one for one in leaves],
            expand_composites=True,
        )
        for replica in range(replicas)
    ]


def _is_spread(value: Any) -> bool:
    return type(value).__name__ == _PER_REPLICA


def _rehearsed(iterator: Any) -> str | None:
    from tensorflow.python.data.ops import dataset_ops
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops
    from tensorflow.python.util import nest

    (worker,) = iterator._iterators
    with ops.device("/CPU:0"):
        parts = [
            array_ops.zeros(_least(spec.shape), spec.dtype)
            for spec in nest.flatten(worker._iterator.element_spec)
        ]
        nothing = dataset_ops.DatasetV2.from_tensors(tuple(parts)).take(0)
    another = _instead_of(iterator, nothing)
    return None if another._type_spec == iterator._type_spec else _OTHER_TYPE


def _handed_once(batches: Sequence[Any], iterator: Any) -> Any:
    from tensorflow.python.framework import ops

    with ops.device("/CPU:0"):
        # Devices are given the elements of a dataset in turn.
        elements = one_after_the_other(
            [tuple(parts) for batch in batches for parts in parts_by_replica(batch)]
        )
    return _instead_of(iterator, elements)


def _instead_of(iterator: Any, dataset: Any) -> Any:
    from tensorflow.python.data.ops import dataset_ops, multi_device_iterator_ops

    (worker,) = iterator._iterators
    own = worker._iterator
    once = multi_device_iterator_ops.OwnedMultiDeviceIterator(
        dataset_ops._RestructuredDataset(plain(dataset), own.element_spec),
        own._devices,
        source_device=own._source_device,
    )
    of_worker = worker._type_spec._from_components([once])
    return iterator._type_spec._from_components([of_worker])


def _least(shape: Any) -> list[int]:
    return [] if shape.rank is None else [size or 0 for size in shape.as_list()]
