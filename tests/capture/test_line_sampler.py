"""The thread that looks at the script's lines: when it lives, what it tells, whom it troubles."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture import timeline as module
from pipediag.capture.callsites import ScriptLine, script_line_of
from pipediag.capture.timeline import LineSampler
from pipediag.session.timeline import SeenLine, SeenLines

FEW_S = 10.0
MS = 1_000_000
MAIN, OTHER = 1, 2

LIBRARY = "/usr/lib/python3/site-packages/lib/core.py"
OWN = module.__file__


def stack(*innermost_first: tuple[str, int, str]) -> Any:
    return [
        (
            SimpleNamespace(
                co_filename=file, co_name=function, co_qualname=function, co_firstlineno=1
            ),
            line,
        )
        for file, line, function in innermost_first
    ]


MACHINERY = ("<frozen importlib._bootstrap>", 1, "_find_and_load")
MINE, SCRIPT = ("mine.py", 2, "load"), ("train.py", 3, "<module>")
NUMPYS, KERAS = (
    ("/env/site-packages/numpy/npyio.py", 9, "load"),
    ("/env/site-packages/keras/src/trainer.py", 9, "fit"),
)


@pytest.mark.parametrize(
    ("innermost_first", "expected"),
    [
        ([], None),
        ([(LIBRARY, 9, "run")], None),
        ([(OWN, 9, "run")], None),
        ([(threading.__file__, 9, "run")], None),
        ([("<string>", 9, "run")], None),
        ([SCRIPT], ScriptLine(*SCRIPT, 1, False, False)),
        ([NUMPYS, MINE, SCRIPT], ScriptLine(*MINE, 1, False, False)),
        ([(LIBRARY, 9, "<module>"), MACHINERY, SCRIPT], ScriptLine(*SCRIPT, 1, True, False)),
        ([MINE, MACHINERY, SCRIPT], ScriptLine(*MINE, 1, False, False)),
        ([KERAS, SCRIPT], ScriptLine(*SCRIPT, 1, False, True)),
        ([NUMPYS, KERAS, SCRIPT], ScriptLine(*SCRIPT, 1, False, True)),
        # A function of the script's own that a framework calls is the script's.
        ([MINE, KERAS, SCRIPT], ScriptLine(*MINE, 1, False, False)),
    ],
)
def test_the_innermost_line_of_the_scripts_own_is_found(
    innermost_first: list[tuple[str, int, str]], expected: object
) -> None:
    assert script_line_of(stack(*innermost_first)) == expected


class Night:
    """A sampler whose thread is run by hand: in each sleep of it something happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        self.frames: dict[int, Any] = {}
        self.told: list[SeenLines] = []
        self.started: list[tuple[Any, ...]] = []
        self.no_more_threads = False
        fakes: dict[str, Any] = {
            "time": SimpleNamespace(monotonic_ns=lambda: self.now),
            "stacks": lambda _: self.frames,
            "threading": SimpleNamespace(get_ident=lambda: MAIN, RLock=threading.RLock),
            "_thread": SimpleNamespace(
                start_new_thread=self._start,
                allocate_lock=_thread.allocate_lock,
                get_native_id=lambda: 0,
            ),
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(module, name, fake)
        self.sampler = LineSampler(self.told.append)

    def runs(self, file: str, line: int, thread: int = MAIN) -> None:
        self.frames[thread] = stack((file, line, "<module>"))

    def _start(self, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if self.no_more_threads:
            raise RuntimeError("can't start new thread")
        self.started.append(arguments)

    def passes(self, *moments: Callable[[], None], thread: int = 0) -> None:
        """The thread runs, 20 ms a moment, and comes to rest after the last of them."""
        left: Iterator[Callable[[], None]] = iter((*moments, self.sampler.rest))

        def acquire(timeout: float) -> bool:
            assert timeout == 0.02
            self.now += 20 * MS
            next(left)()
            return False

        asleep: Any = SimpleNamespace(acquire=acquire)
        self.sampler._asleep = asleep
        self.sampler._run(*self.started[thread])


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Night:
    return Night(monkeypatch)


def seen(
    line: int, ms: int, file: str = "train.py", importing: bool = False, *, at_ms: int
) -> SeenLine:
    return SeenLine(file, line, "<module>", importing, ms * MS, at_ns=at_ms * MS)


def test_what_was_seen_is_told_when_it_comes_to_rest(night: Night) -> None:
    night.now = 1000 * MS
    night.runs("train.py", 3)
    night.sampler.go_on(MAIN)
    night.passes(lambda: None, lambda: None, lambda: night.runs("train.py", 4))

    assert night.told == [
        SeenLines(1000 * MS, 1080 * MS, (seen(3, 40, at_ms=1020), seen(4, 20, at_ms=1050)))
    ]


def test_it_tells_every_two_seconds(night: Night) -> None:
    night.runs("train.py", 3)
    night.sampler.go_on(MAIN)

    def sleeps_long() -> None:
        night.now += 1980 * MS

    night.passes(sleeps_long, lambda: None, lambda: None)

    assert night.told == [
        SeenLines(0, 2020 * MS, (seen(3, 2020, at_ms=1010),)),
        SeenLines(2020 * MS, 2060 * MS, (seen(3, 20, at_ms=2030),)),
    ]


def test_what_passed_before_it_was_to_look_is_not_counted(night: Night) -> None:
    night.runs("train.py", 3)
    night.sampler.go_on(MAIN)

    def rests_and_goes_on() -> None:
        night.sampler.rest()
        night.now += 15 * MS
        night.sampler.go_on(MAIN)
        night.now += 5 * MS

    night.passes(rests_and_goes_on)

    assert len(night.started) == 1
    assert night.told == [
        SeenLines(35 * MS, 60 * MS, (replace(seen(3, 5, at_ms=0), at_ns=37_500_000),))
    ]


def test_it_looks_at_the_thread_that_it_is_told_and_at_the_main_one_after_that(
    night: Night,
) -> None:
    night.runs("train.py", 30)
    night.runs("worker.py", 7, thread=OTHER)
    night.sampler.go_on(MAIN)
    night.sampler.go_on(OTHER)
    night.passes(lambda: None, lambda: night.frames.pop(OTHER))

    (told,) = night.told
    assert set(told.lines) == {seen(7, 20, "worker.py", at_ms=10), seen(30, 20, at_ms=30)}


def test_an_error_of_ours_ends_only_the_thread(night: Night) -> None:
    night.sampler.go_on(MAIN)
    night.frames = None  # type: ignore[assignment]
    night.passes(lambda: None)
    (ended,) = night.started[0]

    assert not ended.locked()
    assert night.told == []


def test_a_forked_child_has_no_thread_and_tells_nothing(night: Night) -> None:
    night.sampler.go_on(MAIN)
    night.sampler._seen["train.py", 3, "<module>", False] = 5
    night.sampler._lock.acquire()  # by a thread that the child does not have
    night.sampler.forget()
    night.sampler.stop()

    assert night.told == []
    night.sampler.go_on(MAIN)
    assert len(night.started) == 2


@pytest.fixture
def awake() -> Iterator[LineSampler]:
    sampler = LineSampler(lambda _: None)
    yield sampler
    sampler.stop()


def test_the_script_counts_its_own_threads_alone(awake: LineSampler) -> None:
    own = threading.enumerate()
    told: list[SeenLines] = []
    awake._tell = told.append
    awake.go_on(threading.get_ident())
    while not awake._seen:
        time.sleep(0.01)

    assert threading.enumerate() == own
    task = awake._task
    assert task.exists()
    awake.stop()
    assert not task.exists()
    assert told


def test_a_signal_handler_may_come_back_while_the_lock_is_held(awake: LineSampler) -> None:
    def handler_in_the_middle() -> None:
        with awake._lock:
            awake.go_on(threading.get_ident())
            awake.rest()

    thread = threading.Thread(target=handler_in_the_middle, daemon=True)
    thread.start()
    thread.join(FEW_S)

    assert not thread.is_alive()
