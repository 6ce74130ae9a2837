"""What Python's finalisation does for the script's modules, where the process ends without it.

Files that a script leaves open are closed, and `__del__` methods run, when its modules go. The
order is Python's: a module that nothing else needs goes as a whole, with its names in place for the
finalisers; of one that something holds, the names are taken away.
"""

from __future__ import annotations

import gc
import io
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from pipediag.capture.threads import frames_elsewhere

_MARK = "__pipediag_alive__"
_LAST = ("last_type", "last_value", "last_traceback", "last_exc")
_CODE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


class _Mark:
    """Lies in a namespace, and tells whether that is still there."""


def finalise_modules(is_the_scripts: Callable[[types.ModuleType], bool]) -> None:
    """Let these modules go, as if the interpreter ended; the last imported goes first."""
    for name in _LAST:
        if hasattr(sys, name):
            setattr(sys, name, None)
    marks = []
    for name, module in reversed(list(sys.modules.items())):
        if isinstance(module, types.ModuleType) and is_the_scripts(module):
            mark = vars(module)[_MARK] = _Mark()
            marks.append(weakref.ref(mark))
            sys.modules[name] = None  # type: ignore[assignment]  # as Python does
            del mark
    del module
    gc.collect()
    for reference in marks:
        _clear_what_is_held(reference)
    gc.collect()


def close_open_files() -> None:
    """Close every file that is open, what writes through another one first."""
    streams = [thing for thing in gc.get_objects() if issubclass(type(thing), io.IOBase)]
    streams.sort(key=_depth)
    for stream in streams:
        if stream not in (sys.stdin, sys.stdout, sys.stderr) and not _is_a_part_of_these(stream):
            with suppress(Exception):
                stream.close()


def _clear_what_is_held(reference: weakref.ref[_Mark]) -> None:
    mark = reference()
    if mark is None:
        return
    for namespace in _namespaces(mark):
        if _runs_elsewhere(namespace):
            continue  # Python stops a daemon thread there; this one would see its names go.
        # Objects before what their finalisers may call.
        for is_code in (False, True):
            for name, value in list(namespace.items()):
                if isinstance(value, _CODE) == is_code and name != "__builtins__":
                    namespace[name] = None
                del value


def _runs_elsewhere(namespace: dict[str, Any]) -> bool:
    return any(frame.f_globals is namespace for frame in frames_elsewhere())


def _namespaces(mark: _Mark) -> Iterator[dict[str, Any]]:
    for holder in gc.get_referrers(mark):
        if isinstance(holder, dict) and holder.get(_MARK) is mark:
            yield holder


def _depth(stream: io.IOBase) -> int:
    """How near it is to the descriptor: text, files of gzip and its like, buffers, raw files."""
    if isinstance(stream, io.TextIOWrapper):
        return 0
    if type(stream).__module__ != "_io":
        return 1
    return 3 if isinstance(stream, io.RawIOBase) else 2


def _is_a_part_of_these(stream: io.IOBase) -> bool:
    """Whether a standard stream writes through it."""
    for standard in (sys.stdin, sys.stdout, sys.stderr):
        buffer = getattr(standard, "buffer", None)
        if stream is buffer or stream is getattr(buffer, "raw", buffer):
            return True
    return False
