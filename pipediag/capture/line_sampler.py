"""Samples the line of the script's own code that runs, fifty times a second, outside of its steps.

The sampling thread is none of `threading`'s, so that the script counts its own threads alone.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pipediag.capture.callsites import ScriptLine, current_frames, script_line_of
from pipediag.session.timeline import SeenLine, SeenLines

# A thread keeps the interpreter lock for 5 ms, so samples meet most often the lines that give it
# up: trust the share of a function more than that of a line. A shorter switch interval would let a
# thread go on while its frames are walked, which crashed 3 of 16 runs.
# Own choices: a sample takes some 20 microseconds of the interpreter lock.
_INTERVAL_NS = 20_000_000
_TELL_EVERY_NS = 2_000_000_000
_MOST_LINES = 20
_JOIN_S = 0.5
_WAIT_S, _MOST_WAITS = 0.0002, 500


@dataclass
class _Met:
    """Total time of one line, and the mean moment at which it was met."""

    ns: int = 0
    weighed: int = 0

    def between(self, start_ns: int, end_ns: int) -> None:
        self.ns += end_ns - start_ns
        self.weighed += (end_ns - start_ns) * (start_ns + end_ns) // 2

    @property
    def at_ns(self) -> int | None:
        return self.weighed // self.ns if self.ns else None


class LineSampler:
    """Reports what it saw whenever it comes to rest, and every two seconds."""

    def __init__(self, tell: Callable[[SeenLines], None]) -> None:
        self._tell = tell
        self._home = self._thread = threading.get_ident()
        # A signal handler of the script's may come back here on the thread that holds it.
        self._lock = threading.RLock()
        self._wanted = False
        self._ended: _thread.LockType | None = None
        """Held for as long as the thread lives; None while there is none."""
        self._asleep = _held_lock()
        """Released to wake it."""
        self._task: Path | None = None
        """Where the system has the thread that was started last."""
        self._seen: dict[ScriptLine, _Met] = {}
        self._since_ns = 0

    def go_on(self, thread: int) -> None:
        with self._lock:
            self._thread = thread
            if self._wanted:
                return
            self._wanted = True
            self._since_ns = time.monotonic_ns()
            if self._ended is None:
                self._start()

    def rest(self) -> None:
        with self._lock:
            if not self._wanted:
                return
            self._wanted = False
            seen = self._taken(time.monotonic_ns())
        if seen is not None:
            self._tell(seen)

    def stop(self) -> None:
        """Rest, and wait until the thread is gone."""
        self.rest()
        ended = self._ended
        if ended is not None:
            if self._asleep.locked():
                self._asleep.release()
            if ended.acquire(timeout=_JOIN_S):
                ended.release()
        # Python counts the system's threads when it forks, and warns of more than one.
        task, self._task = self._task, None
        for _ in range(_MOST_WAITS):
            if task is None or not task.exists():
                break
            time.sleep(_WAIT_S)

    def forget(self) -> None:
        """Forget the thread, in a forked child, which does not have it."""
        self._lock = threading.RLock()
        self._wanted = False
        self._ended = None
        self._task = None
        self._seen = {}

    def _start(self) -> None:
        ended = _held_lock()
        try:
            _thread.start_new_thread(self._run, (ended,))
        except RuntimeError:
            self._wanted = False  # the process may have no more threads
        else:
            self._ended = ended

    def _run(self, ended: _thread.LockType) -> None:
        try:
            self._task = Path(f"/proc/self/task/{_thread.get_native_id()}")
            last_ns = time.monotonic_ns()
            while True:
                self._asleep.acquire(timeout=_INTERVAL_NS / 1e9)
                now_ns = time.monotonic_ns()
                line = self._line_in(current_frames())
                with self._lock:
                    if not self._wanted:
                        self._ended = None
                        return
                    if line is not None:
                        met = self._seen.setdefault(line, _Met())
                        met.between(max(last_ns, self._since_ns), now_ns)
                    due = now_ns - self._since_ns > _TELL_EVERY_NS
                    seen = self._taken(now_ns) if due else None
                last_ns = now_ns
                if seen is not None:
                    self._tell(seen)
        except BaseException:
            return
        finally:
            ended.release()

    def _line_in(self, frames: Mapping[int, FrameType]) -> ScriptLine | None:
        """Return the line of the chosen thread, or else that of the main one.

        The frames are an argument, as no variable of a function that goes on may hold them: among
        them is the sampler's own, with which they would live in a circle, and with them what the
        script's functions had. Kept while the sampler sleeps, they also crash Python 3.11.7.
        """
        return script_line_of(frames.get(self._thread)) or script_line_of(frames.get(self._home))

    def _taken(self, now_ns: int) -> SeenLines | None:
        seen, self._seen = self._seen, {}
        since_ns, self._since_ns = self._since_ns, now_ns
        most = sorted(seen.items(), key=lambda one: -one[1].ns)[:_MOST_LINES]
        lines = tuple(
            SeenLine(
                line.file,
                line.line,
                line.function,
                line.importing,
                met.ns,
                line.in_framework,
                met.at_ns,
            )
            for line, met in most
        )
        return SeenLines(since_ns, now_ns, lines) if lines else None


def _held_lock() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock
