"""Distinguishes training loops from others: a step trains when it writes a trainable variable.

The operation that writes is made while a function is traced, so the function is marked then.
"""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from pipediag.capture.callsites import (
    frames,
    function_of,
    is_in_a_loop,
    is_users,
    locals_of,
    name_of,
    unwrap,
)
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.pipelines.functions import why_not_traced
from pipediag.capture.pipelines.values import calling, other_argument
from pipediag.capture.process import EachThread, runs_tf_data, this_thread
from pipediag.capture.timeline import Timeline
from pipediag.session.recorded_loops import EagerStep, RecordedLoop
from pipediag.vocabulary import LoopRole


@dataclass(eq=False)
class Running:
    """Functions that run on one thread."""

    functions: list[Any] = field(default_factory=list)
    """Functions that run on the thread, the outermost first."""
    is_of_tf_data: bool = field(default_factory=runs_tf_data)
    updated: bool = False
    """True if a trainable variable was written."""
    looped: bool = False
    """True if a function that loops over data by itself was called: what it wrote may be no step's
    of the loop around it."""
    tracing: bool = False
    tracing_ns: int = 0
    """Time spent tracing functions called from the script's own level, since the last step."""


class UpdateWatch:
    """Knows which functions write trainable variables, and whether one was written lately."""

    def __init__(self) -> None:
        self._threads = EachThread(Running, weakref.WeakSet())
        self._training: weakref.WeakSet[Any] = weakref.WeakSet()
        self.looping: weakref.WeakSet[Any] = weakref.WeakSet()
        """Functions that loop over data by themselves."""
        self._replicas: weakref.WeakKeyDictionary[threading.Thread, Running] = (
            weakref.WeakKeyDictionary()
        )
        """Threads that run a part of the step of another thread, and what runs there."""
        self._timeline: Timeline | None = None

    @property
    def here(self) -> Running:
        return self._threads.here

    def take_updated(self) -> bool:
        """Return True if this thread wrote a trainable variable since it was last asked."""
        here = self.here
        updated, here.updated, here.looped = here.updated, False, False
        return updated

    def install_optimizer(self, optimizer_class: type, guard: Guard) -> None:
        """Watch an optimizer's step, as some optimizers write by native operations."""
        what = "telling which steps train"
        guard.tell_before(optimizer_class, "apply_gradients", what, lambda *_, **__: self.note())

    def note(self) -> None:
        """Note a write of a trainable variable, or a trace of a function that will write one."""
        running = [self.here]
        thread = this_thread() if self._replicas else None
        if thread is not None and thread in self._replicas:
            running.append(self._replicas[thread])
        for one in running:
            one.updated = True
            self._training.update(one.functions)

    def begins_replica(self, thread: threading.Thread) -> None:
        """Note that a strategy runs a part of what runs here on this thread, for a replica."""
        self._replicas[thread] = self.here

    def enter(self, function: Any) -> None:
        here = self.here
        here.functions.append(function)
        if function in self._training:
            here.updated = True

    def leave(self) -> None:
        self.here.functions.pop()

    def knows(self, function: Any) -> None:
        self._training.add(function)

    def trains(self, function: Any) -> bool:
        return function in self._training

    def loops_itself(self, function: Any) -> bool:
        # In this order, at every call: a weak set answers in Python code.
        return bool(self.looping) and function in self.looping

    @property
    def busy(self) -> bool:
        """Return True if the current call is made inside another call, or by tf.data."""
        here = self.here
        return bool(here.functions) or here.is_of_tf_data

    def timed(
        self, trace: Callable[..., Any], guard: Guard, timeline: Timeline
    ) -> Callable[..., Any]:
        """Wrap the tracing of a Python function, to measure how long it takes."""
        self._timeline = timeline
        what = "timing how functions are traced"
        begins, ended = guard.entry(what, self._trace_begins), guard.entry(what, self._trace_ended)
        return guard.around(trace, begins, ended)

    def _trace_begins(self, *_: Any, **__: Any) -> int | None:
        here = self.here
        called = here.functions or (self._timeline is not None and self._timeline.in_a_call)
        if here.tracing or not called:
            return None
        here.tracing = True
        return time.monotonic_ns()

    def _trace_ended(self, began_ns: int) -> None:
        here = self.here
        now_ns = time.monotonic_ns()
        here.tracing_ns += now_ns - began_ns
        if self._timeline is not None:
            self._timeline.passed("tracing", began_ns, now_ns)
        here.tracing = False


_PREVIEW_BATCHES = 5


def learn_role(record: RecordedLoop) -> None:
    """Mark a loop whose step wrote a trainable variable as a training loop."""
    record.updates_variables = True
    if record.role == "other":
        record.role = "training"
        record.role_reason = "its steps write trainable variables"


def join_role(loop: Loop, joined: Loop) -> None:
    """Make a joined iterator's training the loop's: its steps draw from both."""
    record = joined.record
    if joined.diagnosis is not None or record.kind == "keras":
        return
    if joined.trains:
        learn_role(loop.record)
        record.role, record.updates_variables = "other", False
    record.part_of = loop.record.id
    record.role_reason = "its batches go into the steps of another loop"


def settle_role(loop: Loop, loops: Iterable[Loop]) -> None:
    """Set the role of a loop without updates, in view of all loops, for the report."""
    record = loop.record
    if record.role != "other" or record.part_of is not None:
        return
    trainings = [other.record.started_ns for other in loops if other.trains]
    if record.steps <= _PREVIEW_BATCHES:
        named: tuple[LoopRole, str] = "preview", f"{record.steps} batches, no variable written"
    elif not trainings:
        return
    elif loop.last_ns <= min(trainings):
        reason = "read before training began, without writing a trainable variable"
        named = "preparation", reason
    elif record.only_reads:
        named = "reading", "batches are read, and no model is called for them"
    else:
        named = "validation", "batches are consumed without writing a trainable variable"
    record.role, record.role_reason = named


def describe_start(
    loops: LoopRegistry, updates: UpdateWatch, consumer: Consumer, duration_ns: int
) -> None:
    """Describe the loop by one of its first two steps, the first of which builds what it trains."""
    loop, record = consumer.loop, consumer.loop.record
    if record.first_step_ns is None:
        record.first_step_ns = duration_ns
        loop.traced_in_first_step_ns = updates.here.tracing_ns
        loops.describe_keras(loop)
    elif record.fill_ns is None and consumer.hand_over == "call":
        # The first batch was asked for inside a call: what tracing and consumer did not take.
        model = loop.runtime.model_of(consumer.iterator())
        if model is not None and model.gaps_us:
            others = model.gaps_us[0] * 1000 + loop.traced_in_first_step_ns
            record.fill_ns = max(0, record.first_step_ns - others)


def note_eager_step(loop: RecordedLoop) -> None:
    """Note the function between the loop and this call, which applies gradients, that computes
    them, or has another one compute them; where the loop's body has, note that other one."""
    for frame in frames():
        code = frame.f_code
        if not is_users(code.co_filename):
            continue
        others = _that_open_tapes(frame)
        if _is_of_loop(frame, loop):
            if _TAPE not in code.co_names and len(others) == 1:
                _note_step(loop, others[0], frame, {})
            return
        if _TAPE in code.co_names or others:
            _note_step(loop, function_of(frame), calling(frame), locals_of(frame))
            return


def _is_of_loop(frame: FrameType, loop: RecordedLoop) -> bool:
    """Return True if the frame runs the loop: the one with its line, or the innermost that runs a
    loop where that line is the one of `iter`, or the one that applies gradients."""
    if not frame.f_code.co_flags & inspect.CO_NEWLOCALS:
        return True  # a module's
    if not loop.from_python:
        for outer in frames(frame):
            lines = {line for _, _, line in outer.f_code.co_lines()}
            has_line = outer.f_code.co_filename == loop.file and loop.line in lines
            if has_line and is_in_a_loop(outer.f_code, outer.f_lasti):
                return outer is frame
    return is_in_a_loop(frame.f_code, frame.f_lasti)


_TAPE = "GradientTape"


def _that_open_tapes(frame: FrameType) -> list[Any]:
    """Return functions of the script's that a frame's code names, and that only open a tape."""
    code, values = frame.f_code, locals_of(frame)
    owner = values.get(code.co_varnames[0]) if code.co_argcount else None
    names = {**frame.f_globals, **values}
    found = []
    for name in {*code.co_names, *code.co_freevars, *code.co_varnames}:
        method = inspect.getattr_static(type(owner), name, None)
        function = method if isinstance(method, FunctionType) else names.get(name)
        own = function.__code__ if isinstance(function, FunctionType) else code
        opens = _TAPE in own.co_names and "apply_gradients" not in own.co_names
        if own is not code and opens and is_users(own.co_filename):
            found.append(MethodType(function, owner) if function is method else function)
    return found


def _note_step(
    loop: RecordedLoop,
    function: Callable[..., Any],
    caller: FrameType | None,
    values: Mapping[str, Any],
) -> None:
    code: CodeType = unwrap(function).__code__
    place = code.co_filename, code.co_firstlineno
    if place in [(one.file, one.line) for one in loop.eager_steps]:
        return
    lacking = why_not_traced(function)
    other = other_argument(code, caller, values) if caller is not None else None
    if lacking is None and other is not None:
        what = "is no tensor, and another one in later calls: each would be traced anew"
        lacking = f"{other} {what}."
    loop.eager_steps.append(EagerStep(name_of(code), *place, lacking))
