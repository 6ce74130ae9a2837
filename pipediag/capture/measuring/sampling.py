"""Python during the training loop: stack samples, callbacks' time, and pipelines' Python functions.

Stacks have a window of their own: a thread that wakes often competes for the GIL itself.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipediag.capture.callsites import (
    SWITCH_INTERVAL,
    ScriptLine,
    Stack,
    script_line_of,
    stacks,
)
from pipediag.capture.guard import Guard
from pipediag.session.recording import RecordedPythonCalls, RecordedStacks, StackLine


class CallbackClock:
    """Adds up what each class of callbacks takes, from `start` to `stop`."""

    def __init__(self) -> None:
        self.running = False
        """Read on every batch."""
        self._ns: Counter[str] = Counter()

    def start(self) -> None:
        self.running = True

    def turn_begins(self, callback: object) -> tuple[str, int]:
        return type(callback).__name__, time.monotonic_ns()

    def turn_ended(self, turn: tuple[str, int]) -> None:
        if self.running:
            name, began_ns = turn
            self._ns[name] += time.monotonic_ns() - began_ns

    def stop(self) -> dict[str, int]:
        self.running = False
        taken, self._ns = self._ns, Counter()
        return dict(taken)


CALLBACK_CLOCK = CallbackClock()
"""One for all that a process trains, as is the window in which it runs."""


_INTERVAL_NS = 5_000_000
# Innermost functions of threads that are parked, not running Python.
_PARKED = frozenset(
    "wait acquire get select poll accept recv _recv _send join _wait_for_tstate_lock".split()
)
_PARKED_FILES = tuple(
    f"{module}.py" for module in "threading queue selectors socket connection synchronize".split()
)


_MOST_LINES = 100
"""Lines that are kept; what remains was seen once or twice."""


def _wake_on_time() -> None:
    """Let the calling thread wake without the 50 us that Linux may be late (`timerslack_ns`).

    It asks for the GIL once it has waited for the switch interval. Late, it finds that a short call
    of Python has ended: of a generator that took 16 % of a step, 0.4 % of the samples were seen,
    and 14 % without the slack.
    """
    with suppress(OSError):
        Path(f"/proc/{threading.get_native_id()}/timerslack_ns").write_text("1", encoding="ascii")


class StackSampler:
    """Samples from its start, at the begin of a window, until it is stopped at its end."""

    def __init__(self, training_thread: int) -> None:
        self._training_thread = training_thread
        self._samples: list[tuple[int, list[tuple[ScriptLine, str]]]] = []
        """The moment, and the lines of the user's code that threads of each kind were running."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pipediag-stacks", daemon=True)
        self._thread.start()

    def stop(self, loop_id: str, steps_ns: Iterable[tuple[int, int]]) -> RecordedStacks:
        """End sampling and return what was seen in that loop's runs of steps, by begin and end."""
        self._ended.set()
        self._thread.join(timeout=1)
        spans = list(steps_ns)
        samples = [
            lines
            for at_ns, lines in self._samples
            if any(start <= at_ns < end for start, end in spans)
        ]
        lines = Counter(line for sample in samples for line in sample)
        return RecordedStacks(
            loop_id=loop_id,
            samples=len(samples),
            lines=[
                StackLine(line.file, line.line, line.function, thread, count, line.function_line)
                for (line, thread), count in lines.most_common(_MOST_LINES)
            ],
        )

    def _run(self) -> None:
        _wake_on_time()
        SWITCH_INTERVAL.shorten()
        try:
            while not self._ended.wait(_INTERVAL_NS / 1e9):
                at_ns = time.monotonic_ns()
                self._samples.append((at_ns, self._lines_in(stacks())))
        except Exception:
            # What was sampled so far is good; nothing of ours may reach threading.excepthook.
            return
        finally:
            SWITCH_INTERVAL.restore()

    def _lines_in(self, stacks: Mapping[int, Stack]) -> list[tuple[ScriptLine, str]]:
        """Return the lines of the user's code, without those at which the loop calls a framework,
        as to train."""
        own, lines = threading.get_ident(), []
        for ident, stack in stacks.items():
            found = None if ident == own or _is_parked(stack) else script_line_of(stack)
            trains = ident == self._training_thread
            if found is not None and not (trains and found.in_framework):
                lines.append((found, "main" if trains else "source"))
        return lines


def python_threads() -> list[int]:
    """Return the native ids of the threads that Python made.

    Python also lists foreign threads that called back into it, by names that begin with `Dummy-`.
    """
    made = (one for one in threading.enumerate() if not one.name.startswith("Dummy-"))
    return [one.native_id for one in made if one.native_id is not None]


def _is_parked(stack: Stack) -> bool:
    code = stack[0][0]
    return code.co_name in _PARKED and code.co_filename.endswith(_PARKED_FILES)


class PythonClock:
    """Adds up calls by the token under which TensorFlow knows the function."""

    def __init__(self) -> None:
        self._registry: Any = None
        self._original: Callable[..., Any] | None = None
        self._clocked: Callable[..., Any] | None = None
        self._lock = threading.Lock()
        self.running = False
        """True for calls that begin in steps which count, and not between, as between epochs."""
        self._totals: dict[str, list[int]] = {}

    def hook_into(self, registry: type, guard: Guard) -> None:
        """Know the class whose `__call__` TensorFlow calls with a token, a device and arguments."""
        original: Callable[..., Any] = registry.__dict__["__call__"]
        add = guard.entry("measuring the Python functions of pipelines", self._add)

        def clocked(registry: Any, token: str, *args: Any) -> Any:
            if not self.running:
                return original(registry, token, *args)
            wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
            try:
                return original(registry, token, *args)
            finally:
                add(token, time.perf_counter_ns() - wall_ns, time.thread_time_ns() - cpu_ns)

        self._registry, self._original = registry, original
        self._clocked = guard.hook(original, clocked)
        guard.when("forked", self._put_back)
        guard.when("given up", self._put_back)
        guard.when("dismissed", self._put_back)

    def begin(self) -> None:
        if self._registry is not None:
            self._totals = {}
            self._registry.__call__ = self._clocked

    def end(self) -> list[RecordedPythonCalls] | None:
        """Return what was measured, where it could be, and leave the registry as it was."""
        if self._registry is None:
            return None
        self._put_back()
        with self._lock:
            totals, self._totals = self._totals, {}
        return [RecordedPythonCalls(token, *spent) for token, spent in totals.items()]

    def _put_back(self) -> None:
        self.running = False
        if self._registry is not None and self._registry.__dict__["__call__"] is self._clocked:
            self._registry.__call__ = self._original

    def _add(self, token: str, wall_ns: int, cpu_ns: int) -> None:
        with self._lock:
            spent = self._totals.setdefault(token, [0, 0, 0])
            spent[0] += 1
            spent[1] += wall_ns
            spent[2] += cpu_ns


PYTHON_CLOCK = PythonClock()
"""One for all that a process trains: TensorFlow has one registry."""
