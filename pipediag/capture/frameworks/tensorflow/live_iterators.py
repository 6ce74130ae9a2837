"""Pipelines that still run when the script is stopped or over."""

from __future__ import annotations

import gc
import sys
import threading
import time
from types import CodeType
from typing import Any

from pipediag.capture.process import frames_elsewhere

IN_FLIGHT_LIMIT_S = 2.0
"""How long a Python function that a pipeline has called may take to return, before we go on."""

_POLL_S = 0.005
_HANDLES = ("_iterator_resource", "_multi_device_iterator_resource", "_resource_deleter")
_EAGER = ("EagerTensor", "EagerResourceDeleter")
"""Other handles stand for iterators in functions that were traced; no pipeline is behind them."""


def handles_of_live_iterators() -> list[Any]:
    """What TensorFlow's running iterators live by, to be kept until the process is gone.

    One that goes waits for the thread that tunes it, up to a minute and with the interpreter lock:
    TensorFlow 2.21 wakes that thread just before it would see the cancellation. Its handle is
    kept instead of the iterator, which would keep the data set, its functions and their module.
    """
    return [
        handle
        for iterator in _instances(
            ("tensorflow.python.data.ops.iterator_ops", "OwnedIterator"),
            ("tensorflow.python.data.ops.multi_device_iterator_ops", "OwnedMultiDeviceIterator"),
            ("tensorflow.python.data.ops.multi_device_iterator_ops", "MultiDeviceIterator"),
        )
        for name in _HANDLES
        if type(handle := iterator.__dict__.get(name)).__name__ in _EAGER
    ]


def live_sessions() -> list[Any]:
    """TensorFlow 1 sessions, behind which pipelines may run that Python does not see."""
    return _instances(("tensorflow.python.client.session", "BaseSession"))


def park_python_functions() -> None:
    """Let pipelines wait for good where they call Python next, and be out of Python by then.

    Their functions must not see the script's modules go.
    """
    script_ops = sys.modules.get("tensorflow.python.ops.script_ops")
    registry = getattr(script_ops, "FuncRegistry", None)
    if registry is None:
        return
    call, leaving = registry.__call__, threading.get_ident()
    gate = threading.Lock()
    gate.acquire()

    def wait_for_good(functions: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == leaving:
            return call(functions, *args, **kwargs)
        return gate.acquire()

    registry.__call__ = wait_for_good
    give_up_at = time.monotonic() + IN_FLIGHT_LIMIT_S
    while _runs_elsewhere(call.__code__) and time.monotonic() < give_up_at:
        time.sleep(_POLL_S)


def _instances(*classes: tuple[str, str]) -> list[Any]:
    kinds = tuple(
        kind
        for module, name in classes
        if (kind := getattr(sys.modules.get(module), name, None)) is not None
    )
    return [thing for thing in gc.get_objects() if kinds and issubclass(type(thing), kinds)]


def _runs_elsewhere(code: CodeType) -> bool:
    """Whether another thread is inside a call of this function."""
    return any(frame.f_code is code for frame in frames_elsewhere())
