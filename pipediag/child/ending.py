"""The child's end: what it saves, what it tells the parent, what the user gets to see."""

from __future__ import annotations

import atexit
import builtins
import ctypes
import gc
import io
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING

from pipediag.capture.callsites import is_users, package_of
from pipediag.capture.link import Teller, how_it_ended
from pipediag.capture.process import HeldInterrupts, frames_elsewhere
from pipediag.session.messages import Closing, Ended, Leaving, NotSaved

if TYPE_CHECKING:
    from pipediag.capture import Capture

PACKAGE = str(Path(__file__).parents[1]) + os.sep

FLUSH_FAILED = 120
"""The interpreter's own status when standard output could not be flushed at exit."""

_MARK = "__pipediag_alive__"
_LAST = ("last_type", "last_value", "last_traceback", "last_exc")
_CODE = (ModuleType, FunctionType, BuiltinFunctionType, type)


class Ending:
    """Takes part in the interpreter's exit, first and last, and lets Python do the rest.

    Make it before anything else registers with `atexit`: handlers run in reverse order, so ours
    is then the last one, when the script's threads and handlers are through.

    Ctrl-C is the script's for as long as code of its own may run, and held back from code of ours:
    natively nothing would be there to interrupt.
    """

    def __init__(self, teller: Teller, interrupts: HeldInterrupts) -> None:
        self._pid = os.getpid()
        self._teller = teller
        self._interrupts = interrupts
        self._recorder: Capture | None = None
        self._status = 0
        atexit.register(self._leave)

    def record_with(self, recorder: Capture) -> None:
        self._recorder = recorder

    def end_with_thread(self, stop: type[BaseException]) -> None:
        """Let `stop` end the script from any thread, as its training loop may run in one."""
        users_hook = threading.excepthook

        def hook(arguments: threading.ExceptHookArgs) -> None:
            error = arguments.exc_value
            if error is None or not contains(error, stop) or os.getpid() != self._pid:
                users_hook(arguments)
                return
            self.stopped()
            atexit._run_exitfuncs()
            leave_without_finalising(0)

        threading.excepthook = hook

    def begins(self) -> None:
        """Note that the script's code is over; one of the following says for which reason."""
        self._interrupts.hold()

    def finished(self) -> None:
        """End a script whose last line has run."""
        ended = Ended("finished", 0)
        current = threading.current_thread()
        others = (one for one in threading.enumerate() if one is not current)
        if all(thread.daemon for thread in others):
            self._save(ended)
        else:
            # The script goes on in its threads. They are joined before atexit handlers run.
            atexit.register(self._save_at_exit, ended)
        self._interrupts.release()

    def stopped(self) -> None:
        """End a script of which pipediag has seen enough."""
        self._save(Ended("stopped", None))
        self._interrupts.release()

    def failed(self, error: BaseException) -> None:
        """End a script by `error`, which the caller lets through to the interpreter."""
        ended = how_it_ended(error)
        if ended.outcome != "exited":
            self._show_without_own_frames()
        self._save(ended)
        if ended.outcome == "exited":
            self._interrupts.release()

    def _save_at_exit(self, ended: Ended) -> None:
        self._interrupts.hold()
        self._save(ended)
        self._interrupts.release()

    def _save(self, ended: Ended) -> None:
        if os.getpid() != self._pid or self._recorder is None:
            return
        self._status = ended.status or 0
        try:
            self._recorder.script_ended(ended.outcome)
        except Exception as problem:  # noqa: BLE001 - the script's own ending comes first
            self._teller.tell(NotSaved(f"{type(problem).__name__}: {problem}"))
        self._teller.tell(ended)

    def _leave(self) -> None:
        if os.getpid() != self._pid:
            return
        self._interrupts.hold()
        self._teller.tell(Closing())
        if self._recorder is not None and self._recorder.let_go():
            leave_without_finalising(self._status, self._let_go)
        self._interrupts.release()

    def _let_go(self) -> None:
        finalise_modules()
        self._teller.tell(Leaving())

    def _show_without_own_frames(self) -> None:
        """Leave printing to the script's excepthook, and to Python what follows it."""
        users_hook = getattr(sys, "excepthook", sys.__excepthook__)

        def hook(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
            sys.excepthook = users_hook
            remove_own_frames(error)
            sys.last_traceback = error.__traceback__
            if users_hook is not sys.__excepthook__:
                self._interrupts.release()
            users_hook(kind, error, error.__traceback__)
            self._interrupts.release()

        sys.excepthook = hook


def leave_without_finalising(status: int, let_go: Callable[[], None] = lambda: None) -> None:
    """End the process now, as finalisation would but for destructors; negative is a signal.

    A pipeline thread that waits for the interpreter lock can hang finalisation for good. What
    finalisation would have written is written here: standard streams, files left open, C streams.
    """
    # First, as natively, while a stream that is an object of the script's can be flushed, and again
    # after what others write while they are closed.
    if not _flush_standard_streams() and status >= 0:
        status = FLUSH_FAILED
    let_go()
    close_open_files()
    _flush_standard_streams()
    ctypes.CDLL(None).fflush(None)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _flush_standard_streams() -> bool:
    flushed = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except Exception:  # noqa: BLE001 - of an object of the script's, any
            flushed = stream is not sys.stdout and flushed
    return flushed


def _is_the_scripts(module: ModuleType) -> bool:
    """Return True for the script and modules of the user's."""
    file = getattr(module, "__file__", None)
    own = isinstance(file, str) and is_users(file) and package_of(file) is None
    return module.__name__ == "__main__" or own


# What Python's finalisation does for the script's modules, where the process ends without it:
# files that a script leaves open are closed, and `__del__` methods run, when its modules go.


class _Mark:
    """Lies in a namespace, and tells whether that is still there."""


def finalise_modules() -> None:
    """Let the script's modules go, as if the interpreter ended; the last imported goes first.

    The order is Python's: a module that nothing else needs goes as a whole, with its names in place
    for the finalisers; of one that something holds, the names are taken away.
    """
    for name in _LAST:
        if hasattr(sys, name):
            setattr(sys, name, None)
    marks = []
    for name, module in reversed(list(sys.modules.items())):
        if isinstance(module, ModuleType) and _is_the_scripts(module):
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
    standard = [sys.stdin, sys.stdout, sys.stderr]
    buffers = [getattr(stream, "buffer", None) for stream in standard]
    # A standard stream writes through these.
    kept = [*standard, *buffers, *(getattr(buffer, "raw", buffer) for buffer in buffers)]
    for stream in streams:
        if not any(stream is one for one in kept):
            with suppress(Exception):
                stream.close()


def _clear_what_is_held(reference: weakref.ref[_Mark]) -> None:
    mark = reference()
    for namespace in gc.get_referrers(mark) if mark is not None else ():
        if not isinstance(namespace, dict) or namespace.get(_MARK) is not mark:
            continue
        if any(frame.f_globals is namespace for frame in frames_elsewhere()):
            continue  # Python stops a daemon thread there; this one would see its names go.
        # Objects before what their finalisers may call.
        for is_code in (False, True):
            for name, value in list(namespace.items()):
                if isinstance(value, _CODE) == is_code and name != "__builtins__":
                    namespace[name] = None
                del value


def _depth(stream: io.IOBase) -> int:
    """Return the distance to the descriptor: text, files of gzip, buffers, raw files."""
    if isinstance(stream, io.TextIOWrapper):
        return 0
    if type(stream).__module__ != "_io":
        return 1
    return 3 if isinstance(stream, io.RawIOBase) else 2


# Tracebacks that show users their own code only.


def remove_own_frames(error: BaseException) -> None:
    """Clean the tracebacks of `error` and of every exception that is shown with it."""
    for shown in chain_of(error):
        shown.__traceback__ = without_own_frames(shown.__traceback__)


def contains(error: BaseException, kind: type[BaseException]) -> bool:
    """Return True if `error` is, comes from or groups an exception of that kind."""
    return any(isinstance(shown, kind) for shown in chain_of(error))


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield `error`, its causes and contexts, and the members of exception groups, each once."""
    group = getattr(builtins, "BaseExceptionGroup", ())  # there since Python 3.11
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        members = current.exceptions if isinstance(current, group) else ()
        waiting += [current.__cause__, current.__context__, *members]


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the frames whose code lies in this package."""
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            kept.append(traceback)
        traceback = traceback.tb_next
    following = None
    for entry in reversed(kept):
        entry.tb_next = following
        following = entry
    return following
