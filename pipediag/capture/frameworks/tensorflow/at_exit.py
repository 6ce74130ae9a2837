"""Pipelines that run, and caches that are being filled, when the script is stopped or over."""

from __future__ import annotations

import gc
import glob
import re
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipediag.capture.process import frames_elsewhere
from pipediag.session.recording import RecordedOperation

IN_FLIGHT_LIMIT_S = 2.0
"""How long a Python function that a pipeline has called may take to return, before we go on."""

_POLL_S = 0.005
_HANDLES = ("_iterator_resource", "_multi_device_iterator_resource", "_resource_deleter")
_EAGER = ("EagerTensor", "EagerResourceDeleter")
"""Other handles stand for iterators in functions that were traced; no pipeline is behind them."""


def handles_of_live_iterators() -> list[Any]:
    """Return the handles of running iterators, to be kept until the process is gone.

    An iterator that goes waits for the thread that tunes it, up to a minute and with the
    interpreter lock: TensorFlow 2.21 wakes that thread just before it would see the cancellation.
    The handle is kept instead of the iterator, which would keep the data set, its functions and
    their module.
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
    """Return TensorFlow 1 sessions, behind which pipelines may run that Python does not see."""
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
    while time.monotonic() < give_up_at and any(
        frame.f_code is call.__code__ for frame in frames_elsewhere()
    ):
        time.sleep(_POLL_S)


def _instances(*classes: tuple[str, str]) -> list[Any]:
    kinds = tuple(
        kind
        for module, name in classes
        if (kind := getattr(sys.modules.get(module), name, None)) is not None
    )
    return [thing for thing in gc.get_objects() if kinds and issubclass(type(thing), kinds)]


_OF_A_WRITER = re.compile(r"_\d+\.(lockfile|index|data-\d+-of-\d+)\S*")


def remove_cut_caches(operations: Iterable[RecordedOperation], began_s: float) -> None:
    """Remove what this process has written of caches in files that it did not complete.

    TensorFlow deletes these files when the cache's iterator goes, as it does after Ctrl-C. An
    iterator that is kept until the process is gone would leave them, and the lock among them lets
    the script's next run die.

    `began_s` is the time of day since which this process runs: older files are not its own.
    """
    for operation in operations:
        name = operation.parameters.get("filename")
        if operation.kind != "cache" or not isinstance(name, str) or not name:
            continue
        if Path(f"{name}.index").exists():
            continue  # complete
        for path in glob.glob(f"{glob.escape(name)}_*"):  # noqa: PTH207 - a prefix, not a folder
            of_a_writer = _OF_A_WRITER.fullmatch(path[len(name) :])
            with suppress(OSError):
                if of_a_writer and Path(path).stat().st_mtime >= began_s:
                    Path(path).unlink()
