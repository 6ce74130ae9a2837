"""What training changes: kept before trials, put back where the script goes on afterwards."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

from pipediag.capture.memory import free_memory_bytes

_MEMORY_SHARE = 0.5
"""Own choice: copies may take half of what is available, as tf.data's own buffers may."""


class TrainingState:
    """Values of all variables, and the states of Python's, NumPy's and TensorFlow's generators.

    Counters inside random operations with a seed of their own live in native kernels; they go on.
    """

    def __init__(self) -> None:
        self._values = [(variable, variable.numpy()) for variable in _variables()]
        self._keep_generators()

    def keep_new(self) -> None:
        """Keep variables that have come since, such as those of a model that was built.

        To make them drew numbers, so the generators go on from where they are now.
        """
        new = self._unknown()
        if new:
            self._values += [(variable, variable.numpy()) for variable in new]
            self._keep_generators()

    def count_unknown(self) -> int:
        """How many variables there are whose values were not kept."""
        return len(self._unknown())

    def restore(self) -> None:
        """Put everything back as it was."""
        self.restore_values()
        random.setstate(self._python)
        if self._numpy is not None:
            _numpy_random().set_state(self._numpy)
        rng = _tensorflow_random()
        if rng is not None and self._tensorflow is not None:
            rng.setstate(self._tensorflow)

    def _keep_generators(self) -> None:
        self._python = random.getstate()
        self._numpy = _numpy_random().get_state() if _numpy_random() is not None else None
        rng = _tensorflow_random()
        self._tensorflow = rng.getstate() if rng is not None else None

    def _unknown(self) -> list[Any]:
        known = {id(variable) for variable, _ in self._values}
        return [variable for variable in _variables() if id(variable) not in known]

    def restore_values(self) -> None:
        """Put the values of the variables back, and leave the generators as they are."""
        for variable, value in self._values:
            variable.assign(value)


def lacks_memory() -> str | None:
    """A sentence where copies of all variables would not fit into memory."""
    needed = sum(
        variable.shape.num_elements() * variable.dtype.size
        for variable in _variables()
        if variable.shape.is_fully_defined()
    )
    free = free_memory_bytes()
    if free is None or needed <= _MEMORY_SHARE * free:
        return None
    return (
        f"a copy of its variables, to put them back afterwards, takes {needed / 2**30:.1f} GiB, "
        f"where {free / 2**30:.1f} GiB are free"
    )


def _variables() -> list[Any]:
    module = sys.modules.get("tensorflow.python.ops.resource_variable_ops")
    if module is None:
        return []
    kind = module.BaseResourceVariable
    return [
        thing
        for thing in gc.get_objects()
        if issubclass(type(thing), kind) and thing._in_graph_mode is False and _has_value(thing)
    ]


def _has_value(variable: Any) -> bool:
    try:
        return bool(variable.is_initialized())
    except Exception:
        return False


def _numpy_random() -> Any:
    return sys.modules.get("numpy.random")


def _tensorflow_random() -> Any:
    context = sys.modules.get("tensorflow.python.eager.context")
    return getattr(context.context(), "_rng", None) if context is not None else None
