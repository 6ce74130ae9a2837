"""Facts about this process: its threads, memory and random numbers, signals that arrive while our
code runs.

Also the processes that train along with it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar

from pipediag.capture.callsites import unwrap, walking
from pipediag.capture.runtime import Runtime


def let_pass(error: BaseException) -> None:
    """Raise the error on if a handler of the script's raised it; else do nothing."""
    if is_of_a_signal_handler(error):
        raise error


def is_of_a_signal_handler(error: BaseException) -> bool:
    """Return True if a handler of the script's raised it, which ran while our code was running.

    One that has put another in its own place is not recognised.
    """
    codes = {
        code
        for number in signal.valid_signals()
        if (code := getattr(unwrap(signal.getsignal(number)), "__code__", None)) is not None
    }
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


class HeldInterrupts:
    """Holds SIGINT back from the script's handler, in the main thread alone.

    One of the script's own hears of it afterwards. That of Python does not: the script is over.
    """

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], object] | None = None
        """The one that is held off; None while nothing is held."""
        self._came = False

    def unblock(self) -> None:
        """Let those through that were blocked until now; one is raised as a KeyboardInterrupt."""
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    def hold(self) -> None:
        """Hold Ctrl-C back from here on; a second call does nothing."""
        handler = signal.getsignal(signal.SIGINT)
        in_main = threading.current_thread() is threading.main_thread()
        if self._handler is None and in_main and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
        handler, self._handler = self._handler, None
        came, self._came = self._came, False
        if handler is None:
            return
        signal.signal(signal.SIGINT, handler)
        if came and handler is not signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Let Ctrl-C end the block, and no more than that, where it is held around the block."""
        if self._handler is None:
            yield
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        except KeyboardInterrupt:
            self._came = True
        finally:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True


@contextmanager
def broken_pipes_are_errors() -> Iterator[None]:
    """Have a write of this thread raise BrokenPipeError there, whatever the program does about it.

    Programs may take the default action of SIGPIPE back, which ends the process.
    """
    masked, pipe = signal.pthread_sigmask(signal.SIG_BLOCK, ()), {signal.SIGPIPE}
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, pipe)
        theirs = signal.sigpending() & pipe
        try:
            yield
        finally:
            if not theirs and signal.sigpending() & pipe:
                signal.sigwait(pipe)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)


State = TypeVar("State")


_ADDING = threading.RLock()


class EachThread(threading.local, Generic[State]):
    """A state for each thread, made when the thread first asks for it, gone with the thread."""

    def __init__(self, new: Callable[[], State], known: weakref.WeakSet[State]) -> None:
        """Make the state of the thread that asks; `known` is a set that all share."""
        self.here, self._known = new(), known
        with _ADDING:
            known.add(self.here)

    def all(self) -> list[State]:
        with _ADDING:
            return list(self._known)


def runs_tf_data() -> bool:
    """Return True if this is a native thread that calls into Python, such as one of tf.data's."""
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
    """Iterate over the frames of all other threads, innermost first."""
    current = threading.get_ident()
    with walking():
        for thread, innermost in sys._current_frames().items():
            frame: FrameType | None = innermost if thread != current else None
            while frame is not None:
                yield frame
                frame = frame.f_back


_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def free_memory_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Return the memory that the machine or the control group has left; None where unknown."""
    known = []
    with suppress(OSError):
        lines = meminfo.read_text(encoding="ascii").splitlines()
        known = [int(one.split()[1]) * 1024 for one in lines if one.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # no group, or no limit: `max`
        limit = int((cgroup / "memory.max").read_text(encoding="ascii"))
        used = int((cgroup / "memory.current").read_text(encoding="ascii"))
        statistics = (cgroup / "memory.stat").read_text(encoding="ascii").split()
        # Files that were read and are not in use give way.
        evictable = int(statistics[statistics.index("inactive_file") + 1])
        known.append(max(0, limit - used + evictable))
    return min(known, default=None)


class RandomState:
    def __init__(self) -> None:
        numpy, context = (
            sys.modules.get(name) for name in ("numpy.random", "tensorflow.python.eager.context")
        )
        self._numpy: Any = numpy
        self._tensorflow = context and getattr(context.context(), "_rng", None)
        self.keep()

    def keep(self) -> None:
        self._of_python = random.getstate()
        self._of_numpy = self._numpy and self._numpy.get_state()
        self._of_tensorflow = self._tensorflow and self._tensorflow.getstate()

    def restore(self) -> None:
        random.setstate(self._of_python)
        if self._numpy is not None:
            self._numpy.set_state(self._of_numpy)
        if self._tensorflow is not None:
            self._tensorflow.setstate(self._of_tensorflow)


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Keep random numbers for the script: to build a shuffle and to trace a function draw some."""
    state = RandomState()
    try:
        yield
    finally:
        state.restore()


_EXCHANGING = ("horovod", "mpi4py")
"""Through these they talk in their steps; a launcher alone may start what is independent."""
_LAUNCHED = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
"""Variables in which launchers say how many processes they started."""


def train_along(runtime: Runtime) -> str | None:
    """Return why no step may be made but the script's own, for a sentence, if so.

    By what it has imported or set up: operations that add up are the same within one process.
    """
    found = runtime.other_processes() or _launched_together() or _in_a_group()
    return found and (
        f"other processes train along ({found}) and would wait for steps that this one makes alone"
    )


def _launched_together() -> str | None:
    package = next((name for name in _EXCHANGING if name in sys.modules), None)
    if package is None:
        return None
    for variable in _LAUNCHED:
        size = os.environ.get(variable, "")
        if size.isdecimal() and int(size) > 1:
            return f"{package} in one of {size} processes, by {variable}"
    return None


def _in_a_group() -> str | None:
    """Return the group of processes that another backend of Keras's has joined, if any."""
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        size = torch.get_world_size()
        if size > 1:
            return f"torch.distributed has {size} processes"
    jax = sys.modules.get("jax._src.distributed")
    size = getattr(getattr(jax, "global_state", None), "num_processes", None) or 1
    return f"jax.distributed has {size} processes" if size > 1 else None
