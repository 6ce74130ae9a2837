"""Timeline of the script: spans, and the lines that run outside of all spans.

One thread is followed: the main one, or another while it trains or calls, and that one does not.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pipediag.capture.callsites import CallSite, ScriptLine, script_line_of, stacks
from pipediag.session.messages import encode
from pipediag.session.timeline import SeenLine, SeenLines, Span, Unwritten
from pipediag.vocabulary import SpanKind

_MOST_LINES = 200_000
"""Own choice: some 20 MB of text, and more than ten thousand epochs."""

FULL = (
    "The script's timeline became too long to be written further: what came later is missing from "
    "the ledger of the run."
)
DELETED = "The script deleted the file of its timeline: the ledger lacks what came before."


# Within these a line of the script's own code says more than the span.
_OPEN_TO_LINES: frozenset[SpanKind] = frozenset({"script", "fit", "callback"})


class Timeline:
    """Timeline of one process; a forked child writes nothing. Errors with its file are noted."""

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._path = path
        self._note = note
        self._lines_left = _MOST_LINES
        self._begun = False
        self._takes_more = True
        self._pid = os.getpid()
        self._owner = threading.get_ident()
        self._next_id = 0
        self._over = False
        self._open: list[Span] = []
        self._steps: Span | None = None
        self._lines_in_steps = False
        """True if the script's lines are sampled in these steps, which train nothing."""
        self.sampler = LineSampler(self._write)

    def begins(self, kind: SpanKind, name: str = "", site: CallSite | None = None) -> Span | None:
        """Begin a span; return None where another thread is followed."""
        if self._over or not self._followed(trains=kind == "fit"):
            return None
        span = self._span(kind, time.monotonic_ns(), None, name, site)
        self._open.append(span)
        self.sample_or_rest()
        self._write(span)
        return span

    def ended(self, span: Span | None) -> None:
        """End a span, and those that began within it and did not end."""
        if span is None or span not in self._open:
            return
        now_ns = time.monotonic_ns()
        if self._steps is not None and self._steps.start_ns >= span.start_ns:
            self._end_steps(now_ns)
        while (last := self._open.pop()) is not span:
            self._write(replace(last, end_ns=now_ns))
        self._write(replace(span, end_ns=now_ns))
        self.sample_or_rest()

    def passed(
        self,
        kind: SpanKind,
        start_ns: int,
        end_ns: int,
        name: str = "",
        site: CallSite | None = None,
    ) -> None:
        if end_ns > start_ns and self._followed():
            self._write(self._span(kind, start_ns, end_ns, name, site))

    def steps_begin(
        self, loop_id: str, now_ns: int, wait_ns: int | None, *, lines: bool = False
    ) -> None:
        """Begin the steps of a loop, with its lines sampled or not; `wait_ns` is None if the step
        asks for its batch itself."""
        if self._over or self._steps is not None or not self._followed(trains=True):
            return
        if wait_ns is not None:
            self.passed("first_batch", now_ns - wait_ns, now_ns, loop_id)
        self._steps = self._span("steps", now_ns, None, loop_id, None)
        self.lines_in_steps(lines)
        self._write(self._steps)

    def lines_in_steps(self, wanted: bool) -> None:
        """Sample the script's lines in the steps that run on this thread, or leave them alone."""
        if threading.get_ident() == self._owner:  # else those that run are another thread's
            self._lines_in_steps = wanted
            self.sample_or_rest()

    def steps_ended(self, now_ns: int) -> None:
        if threading.get_ident() == self._owner:
            self._end_steps(now_ns)
            self.sample_or_rest()

    def closed(self) -> None:
        self._over = True
        self._end_steps(time.monotonic_ns())
        if self._open:
            self.ended(self._open[0])
        self.sampler.stop()

    def given_up(self) -> None:
        """End the timeline while the script goes on, after an error of ours."""
        self.sampler.stop()
        self._end_here()

    def forked(self) -> None:
        self._takes_more = False
        self.sampler.forget()

    @property
    def in_a_call(self) -> bool:
        return any(span.kind in ("fit", "evaluation") for span in self._open)

    @property
    def in_a_callback(self) -> bool:
        """Return True if Keras runs a callback, of which all else is a part."""
        return any(span.kind == "callback" for span in self._open)

    def _followed(self, *, trains: bool = False) -> bool:
        """Return True if this is the thread that is followed, or becomes it.

        What trains goes before calls of another thread, of which no more is seen then.
        """
        if not self._takes_more or os.getpid() != self._pid:
            return False
        here = threading.get_ident()
        if here == self._owner:
            return True
        calls = [span for span in self._open if span.kind != "script"]
        occupied = any(span.kind == "fit" for span in calls) if trains else bool(calls)
        if self._steps is not None or occupied:
            return False
        if calls:
            self.ended(calls[0])
        self._owner = here
        return True

    def _end_steps(self, now_ns: int) -> None:
        steps, self._steps = self._steps, None
        if steps is not None:
            self._write(replace(steps, end_ns=now_ns))

    def sample_or_rest(self) -> None:
        """Sample lines where they tell more than what is open, also after a fork."""
        open_to_lines = all(span.kind in _OPEN_TO_LINES for span in self._open)
        open_to_lines &= self._steps is None or self._lines_in_steps
        if self._open and open_to_lines and self._takes_more:
            self.sampler.go_on(self._owner)
        else:
            self.sampler.rest()

    def _write(self, record: Span | SeenLines) -> None:
        if not self._takes_more:
            return
        self._lines_left -= 1
        self._write_line(record)
        if self._lines_left <= 0:
            self._note(FULL)
            self._end_here()

    def _end_here(self) -> None:
        """Let nothing be known from now on, although the script goes on."""
        if self._takes_more:
            self._takes_more = False
            self._write_line(Unwritten(time.monotonic_ns()))

    def _write_line(self, record: Span | SeenLines | Unwritten) -> None:
        try:
            # The script may clean up where our directory is.
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Opened each time: a script may close what it has not opened, and reuse the number.
            with self._path.open("ab", buffering=0) as file:
                if self._begun and file.tell() == 0:
                    self._note(DELETED)
                self._begun = True
                file.write(encode(record))
        except OSError as error:
            # What is lost of the next lines is no worse; a disk or descriptors may be free again.
            self._note(
                "What the script did could not be written down at some moments, so the ledger of "
                f"the run may be without it: {error.strerror}."
            )

    def _span(
        self, kind: SpanKind, start_ns: int, end_ns: int | None, name: str, site: CallSite | None
    ) -> Span:
        self._next_id += 1
        place = (site.file, site.line) if site is not None else (None, None)
        return Span(self._next_id, kind, start_ns, end_ns, name, *place)


# A thread keeps the interpreter lock for 5 ms, so samples meet most often the lines that give it
# up: trust the share of a function more than that of a line.
# Own choices: a sample takes some 20 microseconds of the interpreter lock.
_INTERVAL_NS = 20_000_000
_TELL_EVERY_NS = 2_000_000_000
_LINES_TOLD = 20
_JOIN_S = 0.5
_WAIT_S, _MOST_WAITS = 0.0002, 500


@dataclass
class _Met:
    """Total time of one line, and the sum of the moments at which it was met, weighed by that."""

    ns: int = 0
    weighed: int = 0


class LineSampler:
    """Samples the line of the script's own code that runs, fifty times a second, and tells of it
    whenever it comes to rest, and every two seconds.

    Its thread is none of `threading`'s, so that the script counts its own threads alone.
    """

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
        """Directory of the system for the thread that was started last."""
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
                threads = self._thread, self._home
                lines = map(script_line_of, map(stacks(threads).get, threads))
                line = next(filter(None, lines), None)
                with self._lock:
                    if not self._wanted:
                        self._ended = None
                        return
                    if line is not None:
                        met = self._seen.setdefault(line, _Met())
                        start_ns = max(last_ns, self._since_ns)
                        met.ns += now_ns - start_ns
                        met.weighed += (now_ns - start_ns) * (start_ns + now_ns) // 2
                    due = now_ns - self._since_ns > _TELL_EVERY_NS
                    seen = self._taken(now_ns) if due else None
                last_ns = now_ns
                if seen is not None:
                    self._tell(seen)
        except BaseException:
            return
        finally:
            ended.release()

    def _taken(self, now_ns: int) -> SeenLines | None:
        seen, self._seen = self._seen, {}
        since_ns, self._since_ns = self._since_ns, now_ns
        most = sorted(seen.items(), key=lambda one: -one[1].ns)[:_LINES_TOLD]
        lines = tuple(
            SeenLine(
                *(line.file, line.line, line.function, line.importing),
                *(met.ns, line.in_framework, met.weighed // met.ns if met.ns else None),
            )
            for line, met in most
        )
        return SeenLines(since_ns, now_ns, lines) if lines else None


def _held_lock() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock
