"""The threads of the script: which are its own, and what we know of each."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Generic, TypeVar

State = TypeVar("State")


class EachThread(Generic[State]):
    """A state for each thread, made when the thread first asks for it, gone with the thread."""

    def __init__(self, new: Callable[[], State]) -> None:
        self._new = new
        self._own = threading.local()
        self._lock = threading.RLock()
        self._known: weakref.WeakSet[State] = weakref.WeakSet()

    @property
    def here(self) -> State:
        """That of the thread that asks."""
        try:
            state: State = self._own.state
        except AttributeError:
            state = self._own.state = self._new()
            with self._lock:
                self._known.add(state)
        return state

    def all(self) -> list[State]:
        """Those of all threads that live."""
        with self._lock:
            return list(self._known)


def runs_tf_data() -> bool:
    """Whether this is a native thread, such as those of tf.data's, that calls into Python."""
    thread = this_thread()
    return thread is None or isinstance(thread, threading._DummyThread)


def this_thread() -> threading.Thread | None:
    """Return the thread that asks; None for a native one that Python does not know.

    `threading.current_thread` would make such a thread one of Python's for ever.
    """
    thread: threading.Thread | None = threading._active.get(  # type: ignore[attr-defined]
        threading.get_ident()
    )
    return thread


def frames_elsewhere() -> Iterator[FrameType]:
    """What all other threads are running, innermost first."""
    current = threading.get_ident()
    for thread, innermost in sys._current_frames().items():
        frame: FrameType | None = innermost if thread != current else None
        while frame is not None:
            yield frame
            frame = frame.f_back
