"""Samples of real threads' stacks, and the clocks of callbacks and of pipelines' functions."""

from __future__ import annotations

import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pytest

from pipediag.capture import callsites
from pipediag.capture.callsites import ScriptLine
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import CallbackClock, PythonClock, StackSampler
from pipediag.session.recording import RecordedStacks, StackLine

ENOUGH = 20
LIMIT_S = 30
ALWAYS = (0, 1 << 63)


@contextmanager
def thread(target: Callable[[threading.Event], None]) -> Iterator[None]:
    ended = threading.Event()
    running = threading.Thread(target=target, args=(ended,), daemon=True)
    running.start()
    try:
        yield
    finally:
        ended.set()
        running.join()


def spin(ended: threading.Event) -> None:
    while not ended.is_set():
        sum(range(200))


def park(ended: threading.Event) -> None:
    ended.wait()


def park_at_a_queue(ended: threading.Event) -> None:
    waiting: queue.Queue[None] = queue.Queue()
    while not ended.is_set():
        with suppress(queue.Empty):
            waiting.get(timeout=1)


def sampled() -> RecordedStacks:
    sampler = StackSampler(threading.get_ident())
    limit = time.monotonic() + LIMIT_S
    while len(sampler._samples) < ENOUGH and time.monotonic() < limit:
        time.sleep(0.01)
    return sampler.stop("fit", [ALWAYS])


def lines_in(stacks: RecordedStacks, function: Callable[..., object]) -> list[StackLine]:
    return [line for line in stacks.lines if line.function == function.__qualname__]


def test_a_thread_in_the_users_code_is_a_source() -> None:
    usual = sys.getswitchinterval()
    with thread(spin):
        stacks = sampled()

    assert stacks.samples >= ENOUGH
    lines = lines_in(stacks, spin)
    assert lines
    assert {(line.file, line.thread) for line in lines} == {(__file__, "source")}
    assert sys.getswitchinterval() == usual


def test_samples_between_two_runs_of_steps_are_none_of_theirs() -> None:
    sampler = StackSampler(threading.get_ident())
    sampler.stop("fit", [])
    line = ScriptLine("train.py", 3, "fetch", 2, importing=False, in_framework=False)
    sampler._samples = [(at_ns, [(line, "source")]) for at_ns in (5, 15, 25, 35)]

    stacks = sampler.stop("fit", [(0, 10), (30, 40)])

    assert stacks.samples == 2
    assert [seen.samples for seen in stacks.lines] == [2]


def test_what_a_framework_does_counts_for_the_line_of_a_source_and_not_of_the_loop() -> None:
    sampler = StackSampler(training_thread=1)
    sampler.stop("fit", [])
    keras = compile("", "/lib/site-packages/keras/src/utils/image_utils.py", "exec")
    stack = [(keras, 1), (spin.__code__, 5)]

    seen = sampler._lines_in({1: stack, 2: stack})

    assert [(line.line, thread) for line, thread in seen] == [(5, "source")]


def test_parked_threads_are_not_seen() -> None:
    with thread(park), thread(park_at_a_queue):
        stacks = sampled()

    assert lines_in(stacks, park) == lines_in(stacks, park_at_a_queue) == []


def test_what_callbacks_take_is_added_up_by_class_while_it_runs() -> None:
    clock = CallbackClock()
    clock.turn_ended(clock.turn_begins("early"))
    clock.start()
    for callback in ("log", "log", 1):
        clock.turn_ended(clock.turn_begins(callback))
    assert clock.stop().keys() == {"str", "int"}
    clock.turn_ended(clock.turn_begins("late"))
    clock.start()
    assert clock.stop() == {}


def make_registry() -> Any:
    """A class like TensorFlow's, of its own for each test."""

    class Registry:
        def __call__(self, token: str, device: str, args: list[Any]) -> Any:
            if token == "fails":
                raise ValueError(*args)
            return args[0]

    return Registry


class Clocked:
    def __init__(self) -> None:
        self.registry = make_registry()
        self.native = self.registry.__dict__["__call__"]
        self.notes: list[str] = []
        self.guard = Guard(self.notes.append)
        self.clock = PythonClock()
        self.clock.hook_into(self.registry, self.guard)

    def call(self, token: str = "warp", value: Any = 1) -> Any:
        return self.registry()(token, "cpu", [value])

    @property
    def is_native(self) -> bool:
        return self.registry.__dict__["__call__"] is self.native


@pytest.fixture
def clocked() -> Clocked:
    return Clocked()


def test_calls_count_while_it_runs(clocked: Clocked) -> None:
    clocked.clock.begin()
    clocked.call()
    clocked.clock.running = True
    result = object()
    assert clocked.call(value=result) is result
    clocked.call()
    clocked.call("crop")
    clocked.clock.running = False
    clocked.call()

    measured = clocked.clock.end()

    assert measured is not None
    assert {one.token: one.calls for one in measured} == {"warp": 2, "crop": 1}
    assert all(one.wall_ns > 0 and one.cpu_ns >= 0 for one in measured)
    assert clocked.is_native


def test_an_error_of_ours_behind_a_call_is_not_the_scripts(
    clocked: Clocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocked.clock.begin()
    monkeypatch.delattr(clocked.clock, "_totals")
    clocked.clock.running = True

    assert [clocked.call(value=value) for value in (1, 2)] == [1, 2]
    with pytest.raises(ValueError, match="the script's own"):
        clocked.call("fails", "the script's own")
    (note,) = clocked.notes
    assert "stopped measuring the Python functions of pipelines after an error" in note


def test_after_a_fork_and_when_given_up_the_registry_is_as_it_was(clocked: Clocked) -> None:
    clocked.clock.begin()
    clocked.guard._forked()
    assert clocked.is_native

    clocked = Clocked()
    clocked.clock.begin()
    clocked.guard.give_up()
    assert clocked.is_native


def test_no_thread_runs_while_the_frames_of_others_are_walked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise they come and go meanwhile, which crashed Python 3.11.7."""
    own_s, walked_at = sys.getswitchinterval(), []

    def frames() -> dict[int, FrameType]:
        walked_at.append(sys.getswitchinterval())
        return {}

    monkeypatch.setattr(sys, "_current_frames", frames)
    sampler = StackSampler(threading.get_ident())
    deadline = time.monotonic() + 30
    while len(walked_at) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    sampler.stop("loop1", [])
    assert len(walked_at) >= 3
    assert min(walked_at) > 0.5
    assert sys.getswitchinterval() == own_s


def test_no_frame_is_held_once_other_threads_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame that is kept while its thread goes on crashed Python 3.11.7 as well."""

    class Frame:
        f_code, f_lineno, f_back = spin.__code__, 7, None

    walked: list[weakref.ref[Frame]] = []
    alive_behind: list[bool] = []

    def frames() -> dict[int, Frame]:
        frame = Frame()
        walked.append(weakref.ref(frame))
        return {-1: frame}

    @contextmanager
    def lengthened() -> Iterator[None]:
        yield
        alive_behind.append(walked[-1]() is not None)

    monkeypatch.setattr(sys, "_current_frames", frames)
    monkeypatch.setattr(callsites.SWITCH_INTERVAL, "lengthened", lengthened)
    assert callsites.stacks() == {-1: [(spin.__code__, 7)]}
    assert alive_behind == [False]


@pytest.mark.parametrize("between", ["nothing", "shorten", "restore", "both"])
def test_the_script_s_switch_interval_comes_back(between: str) -> None:
    own_s, interval = sys.getswitchinterval(), callsites._SwitchInterval()
    try:
        if between in ("restore", "both"):
            interval.shorten()
        with interval.lengthened():
            if between == "shorten":
                interval.shorten()
            if between in ("restore", "both"):
                interval.restore()
            if between == "both":
                interval.shorten()
        short = between in ("shorten", "both")
        assert (sys.getswitchinterval() < own_s) is short
    finally:
        interval.restore()
        sys.setswitchinterval(own_s)
