"""Samples of Python stacks beside the training loop, and what callbacks take meanwhile.

They have a window of their own: a thread that wakes often competes for the GIL itself, so it must
not run while the baseline is measured. Samples are few, and miss what holds the GIL; the clock of
the callbacks misses nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from pipediag.capture.callsites import FRAMEWORKS, is_users, package_of
from pipediag.capture.python_functions import line_of, name_of
from pipediag.session.recorded_windows import RecordedStacks, StackLine


class CallbackClock:
    """Adds up what each class of callbacks takes, from `start` to `stop`."""

    def __init__(self) -> None:
        self.running = False
        """Read on every batch."""
        self._ns: dict[str, int] = {}

    def start(self) -> None:
        """From now on; what was added up before is gone."""
        self._ns = {}
        self.running = True

    def add(self, name: str, ns: int) -> None:
        """Add what a callback of that class took."""
        if self.running:
            self._ns[name] = self._ns.get(name, 0) + ns

    def stop(self) -> dict[str, int]:
        """Nanoseconds by class."""
        self.running = False
        taken, self._ns = self._ns, {}
        return taken


CALLBACK_CLOCK = CallbackClock()
"""One for all that a process trains, as is the window in which it runs."""


_INTERVAL_NS = 5_000_000
# A thread that computes for less than Python's switch interval (5 ms) would never be caught at it.
_SWITCH_INTERVAL_S = 0.00005
# Innermost functions of threads that are parked, not running Python.
_PARKED = frozenset("wait acquire get select poll accept recv join _wait_for_tstate_lock".split())
_PARKED_FILES = (
    "threading.py",
    "queue.py",
    "selectors.py",
    "socket.py",
    "connection.py",
    "synchronize.py",
)


class _SwitchInterval:
    """Python's switch interval, which is the script's: changed for a while, and put back."""

    def __init__(self) -> None:
        self._usual_s: float | None = None

    def shorten(self) -> None:
        self._usual_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_INTERVAL_S)

    def restore(self) -> None:
        """Give the script back the one that it had; a child forked meanwhile has to, too."""
        if self._usual_s is not None:
            sys.setswitchinterval(self._usual_s)
            self._usual_s = None


SWITCH_INTERVAL = _SwitchInterval()


@dataclass
class _Sample:
    """The threads that were running at one moment: their kinds, and lines of the user's code."""

    at_ns: int
    threads: list[str] = field(default_factory=list)
    lines: list[tuple[str, int, str, str]] = field(default_factory=list)


class StackSampler:
    """Start it beside a window, stop it at its end."""

    def __init__(self, training_thread: int) -> None:
        self._training_thread = training_thread
        self._samples: list[_Sample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pipediag-stacks", daemon=True)
        self._thread.start()

    def stop(self, loop_id: str, steps_ns: Iterable[tuple[int, int]]) -> RecordedStacks:
        """End sampling and return what was seen in that loop's steps.

        Args:
            loop_id: the loop.
            steps_ns: begin and end of each run of steps: what lies between two of them, such as an
                epoch's end, is no part of a step.
        """
        self._ended.set()
        self._thread.join(timeout=1)
        spans = list(steps_ns)
        samples = [
            sample
            for sample in self._samples
            if any(start <= sample.at_ns < end for start, end in spans)
        ]
        lines = Counter(line for sample in samples for line in sample.lines)
        threads = Counter(kind for sample in samples for kind in sample.threads)
        return RecordedStacks(
            loop_id=loop_id,
            samples=len(samples),
            interval_ns=_INTERVAL_NS,
            lines=[
                StackLine(file, line, function, thread, count)
                for (file, line, function, thread), count in lines.most_common(20)
            ],
            thread_samples=dict(threads),
        )

    def _run(self) -> None:
        SWITCH_INTERVAL.shorten()
        try:
            while not self._ended.wait(_INTERVAL_NS / 1e9):
                self._sample()
        except Exception:
            # What was sampled so far is good; nothing of ours may reach threading.excepthook.
            return
        finally:
            SWITCH_INTERVAL.restore()

    def _sample(self) -> None:
        sample = _Sample(time.monotonic_ns())
        own = threading.get_ident()
        for ident, frame in sys._current_frames().items():
            if ident == own or _is_parked(frame):
                continue
            users = _running_user_frame(frame)
            thread = self._kind_of(ident, users)
            sample.threads.append(thread)
            if users is not None:
                code = users.f_code
                sample.lines.append((code.co_filename, line_of(users), name_of(code), thread))
        self._samples.append(sample)

    def _kind_of(self, ident: int, users: FrameType | None) -> str:
        if ident == self._training_thread:
            return "main"
        return "source" if users is not None else "other"


class ThreadCpu:
    """CPU time of each Python thread while steps run; empty where /proc does not tell."""

    def __init__(self) -> None:
        self._at_start: dict[str, int] | None = None
        self._used: dict[str, int] = {}

    def start(self) -> None:
        """Count from now on; does nothing where it counts already."""
        if self._at_start is None:
            self._at_start = _cpu_so_far()

    def pause(self) -> None:
        """Count no further until `start`."""
        before, self._at_start = self._at_start, None
        if before is None:
            return
        for name, cpu_ns in _cpu_so_far().items():
            self._used[name] = self._used.get(name, 0) + cpu_ns - before.get(name, 0)

    def used(self) -> dict[str, int]:
        """Stop counting and return nanoseconds by `name#native id`."""
        self.pause()
        return self._used


def _cpu_so_far() -> dict[str, int]:
    # From /proc, as the C library's thread clocks crash for a thread that has ended.
    usage: dict[str, int] = {}
    for thread in threading.enumerate():
        try:
            schedule = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
        except OSError:
            continue
        usage[f"{thread.name}#{thread.native_id}"] = int(schedule.split()[0])
    return usage


def _is_parked(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name in _PARKED and code.co_filename.endswith(_PARKED_FILES)


def _running_user_frame(frame: FrameType | None) -> FrameType | None:
    """The user's line that a thread is running, or None while it is inside a framework's call."""
    while frame is not None:
        filename = frame.f_code.co_filename
        package = package_of(filename)
        if package in FRAMEWORKS:
            return None
        if package is None and is_users(filename):
            return frame
        frame = frame.f_back
    return None
