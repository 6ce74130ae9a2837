"""Iterators that are alive when a script is stopped."""

from __future__ import annotations

import gc
import sys
from typing import Any


def live_iterators() -> list[Any]:
    """All iterators that TensorFlow made for Python, to be kept until the process is gone.

    One that goes waits for the thread that tunes it, up to a minute and with the interpreter lock:
    TensorFlow 2.21 wakes that thread just before it would see the cancellation.
    """
    iterators = sys.modules.get("tensorflow.python.data.ops.iterator_ops")
    multi = sys.modules.get("tensorflow.python.data.ops.multi_device_iterator_ops")
    kinds = tuple(
        kind
        for module, name in ((iterators, "OwnedIterator"), (multi, "OwnedMultiDeviceIterator"))
        if (kind := getattr(module, name, None)) is not None
    )
    return [thing for thing in gc.get_objects() if kinds and issubclass(type(thing), kinds)]
