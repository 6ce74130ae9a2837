"""The batch that a loop inside a tf.function is at, kept where a thread beside it can read it.

An operation of the loop's body puts the batch's tensors into a variable, without a copy of them. It
draws nothing, and the training's own operations do not wait for it.
"""

from __future__ import annotations

from typing import Any

from pipediag.capture.frameworks.tensorflow.beside_graphs import VariantBeside, our_operations
from pipediag.capture.frameworks.tensorflow.datasets import batch_bytes
from pipediag.capture.runtime import KeptBatch

_MOST_HELD = 8_000_000
"""Bytes of a batch that outlives its step by one, and that the step can't write over meanwhile, in
windows that are timed, too. Own choice: two features of 1024 rows of 512 ids, or what takes a step
about a millisecond to copy. Float parts are among it, as ids may come as floats."""


class BatchKeeper:
    """Of one loop."""

    def __init__(self) -> None:
        self._kept = VariantBeside()
        self._types: list[Any] = []

    def keep(self, number: Any, batch: Any) -> None:
        """Keep the batch, and its number in the loop, wherever what is traced now runs."""
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_optional_ops
        from tensorflow.python.util import nest

        flat = nest.flatten(batch, expand_composites=True)
        parts = [number, *(one for one in flat if one is not None)]
        self._types = [one.dtype for one in parts]
        with our_operations(), ops.device("/CPU:0"):
            self._kept.assign(gen_optional_ops.optional_from_value(parts))

    def empty(self) -> None:
        """Let the batch go; a step that runs from now on keeps its own again."""
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_optional_ops

        with ops.init_scope(), ops.device("/CPU:0"):
            self._kept.assign(gen_optional_ops.optional_none())

    def read(self) -> KeptBatch | None:
        """The batch of a step that runs, or of the last; None where none has begun."""
        from tensorflow.python.framework import tensor_shape
        from tensorflow.python.ops import gen_optional_ops

        kept = self._kept.read()
        if kept is None or not bool(gen_optional_ops.optional_has_value(kept)):
            return None
        shapes = [tensor_shape.unknown_shape()] * len(self._types)
        number, *parts = gen_optional_ops.optional_get_value(kept, self._types, shapes)
        return KeptBatch(self._kept.name, int(number.numpy()), parts)


def not_kept(dataset: Any, *, on_host: bool) -> str | None:
    """Why batches of a loop over it are not kept, as a sentence.

    Args:
        dataset: what the loop is over.
        on_host: whether its batches are in the host's memory in any case.
    """
    if not on_host and _any_accelerator():
        return "Batches of a loop over an iterator may be on a device, from which none is copied."
    if batch_bytes(dataset.element_spec) > _MOST_HELD:
        return f"Batches of more than {_MOST_HELD // 1_000_000} MB are not kept to be looked at."
    return None


def _any_accelerator() -> bool:
    from tensorflow.python.eager import context

    return int(context.context().num_gpus()) > 0
