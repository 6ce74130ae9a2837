"""A step trains when it writes a trainable variable.

Methods of TensorFlow's variables are wrapped. Inside a tf.function they run only while it is
traced, and mark the function; in steady state a traced step costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.watching.updates import UpdateWatch

_WRITES = (
    "assign assign_add assign_sub scatter_add scatter_sub scatter_update scatter_nd_add "
    "scatter_nd_sub scatter_nd_update batch_scatter_update"
).split()


def watch_writes(classes: Iterable[type], updates: UpdateWatch, guard: Guard) -> None:
    """Note each write of a trainable variable of these classes."""
    note = updates.note

    def written(variable: Any, *_: Any, **__: Any) -> None:
        # Counters are made trainable by default too; none of them can be trained.
        if variable.trainable and variable.dtype.is_floating:
            note()

    updates.install_writes(classes, _WRITES, written, guard)
