"""Puts the parts together before the script runs, and hooks into frameworks as it imports them."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.abc import MetaPathFinder
from pathlib import Path

from pipediag.capture.callsites import SWITCH_INTERVAL, call_site
from pipediag.capture.frameworks.keras import facts
from pipediag.capture.frameworks.keras.framework import Keras
from pipediag.capture.frameworks.tensorflow.framework import TensorFlow
from pipediag.capture.frameworks.tensorflow.runtime import (
    TensorFlowRuntime,
    handles_of_live_iterators,
    live_sessions,
    park_python_functions,
    remove_cut_caches,
)
from pipediag.capture.guard import Guard, nothing
from pipediag.capture.link import CommandPipe, Teller
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.pace import Pace
from pipediag.capture.measuring.windows import Instruments, Profiler
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.process import HeldInterrupts
from pipediag.capture.recorder import Recorder, describe_environment
from pipediag.capture.timeline import Timeline
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching.step_clock import StepClock, Watchers
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import Ended, RunSettings
from pipediag.vocabulary import BY_ITSELF, OwnEnding

FRAMEWORKS: tuple[type[TensorFlow | Keras], ...] = (TensorFlow, Keras)
_PACKAGE = "tensorflow"
"""Package that is imported before all modules that are hooked into."""


class Capture:
    def __init__(
        self,
        settings: RunSettings,
        teller: Teller,
        *,
        program_goes_on: bool = False,
        interrupts: HeldInterrupts | None = None,
    ) -> None:
        self._teller = teller
        self._interrupts = interrupts or HeldInterrupts()
        self._pid = os.getpid()
        self._began_s = time.time()
        Path(settings.capture_directory).mkdir(parents=True, exist_ok=True)
        self._recorder = Recorder(settings.recording_path)
        self._guard = Guard(self._recorder.note)
        self._updates = UpdateWatch()
        self._descriptions = [framework.describe for framework in FRAMEWORKS]
        self._timeline = Timeline(settings.timeline_path, self._recorder.note)
        plan = PlanRecorder(self._recorder, came_late=program_goes_on)
        profiler = Profiler(self._recorder, settings.trace_directory)
        runtime = TensorFlowRuntime()
        loops = LoopRegistry(self._recorder, plan, runtime, facts)
        instruments = Instruments(
            recorder=self._recorder,
            profiler=profiler,
            pace=Pace(settings),
            state=KeptState(self._guard, self._recorder.note),
            timeline=self._timeline,
            runtime=runtime,
            tell=teller.tell,
            running_pipelines=list if program_goes_on else handles_of_live_iterators,
            descriptions=self._descriptions,
        )
        commands = None if settings.command_fd is None else CommandPipe(settings.command_fd)
        held = Trials(commands, instruments)
        leave = None if program_goes_on else self._leave_now
        self._steps = StepClock(loops, self._updates, instruments, leave, held)
        self._loops = loops
        self._plan = plan
        when, timeline = self._guard.when, self._timeline
        when("forked", SWITCH_INTERVAL.restore, timeline.forked, self._steps.let_go)
        when("before fork", timeline.sampler.stop)
        when("after fork", timeline.sample_or_rest)
        when("given up", self._steps.given_up, timeline.given_up)
        self._watchers = Watchers(
            **vars(instruments),
            guard=self._guard,
            steps=self._steps,
            updates=self._updates,
            held=held,
            plan=plan,
            came_late=program_goes_on,
        )

    def install(self) -> None:
        """Hook onto frameworks as the script imports them, and save a first recording."""
        install_hooks(self._watchers)
        self._guard.watch_forks()
        self._recorder.save()

    def install_in(self, before_training: Callable[[], None] = nothing) -> None:
        """Hook onto frameworks that a program has imported, which goes on without us later."""
        self._steps.choice.before_training = before_training
        self.install()

    def leave_alone(self, *, stopped: bool = True) -> None:
        """Take back what `install_in` did; `stopped` says that the loop was ended too early."""
        # Where an error or Ctrl-C came in the middle, a window is open still.
        if os.getpid() == self._pid:
            self._close("what was measured ended by an error")
        self._guard.put_back()
        self._steps.let_go()
        self._plan.forget_all()
        self._timeline.closed()
        if stopped:
            remove_cut_caches(self._recorder.recording.operations, self._began_s)
        self._guard.dismiss()

    def _close(self, reason: str) -> None:
        self._recorder.attempt("closing what was open", self._steps.script_over, reason)

    def declare_training(self, reason: str, epochs: int | None) -> None:
        """Note that the loop of the last iterator trains, or stands for one that does, for so many
        epochs; None for one that goes on until it is stopped."""
        record = self._loops.all()[-1].record
        record.role, record.role_reason, record.planned_rounds = "training", reason, epochs

    def note(self, sentence: str) -> None:
        self._recorder.note(sentence)

    def fit_goes_on(self) -> None:
        """Measure a `fit` of Keras's that has begun, to its end."""
        self._timeline.begins("fit", "fit", call_site())

    def script_begins(self, began_ns: int) -> None:
        """Note that the script's first line is next; our code ran since that moment."""
        self._timeline.passed("aside", began_ns, time.monotonic_ns())
        self._timeline.begins("script")

    def let_go(self) -> bool:
        """Drop all that is the script's; returns whether pipelines still run.

        Of those that call Python one in two hangs the interpreter's exit. They are halted, and the
        process has to end without the interpreter's finalisation.
        """
        self._guard.step_aside()
        self._steps.let_go()
        gc.collect()
        self._steps.choice.keep_pipelines()
        sessions = self._recorder.pipelines_call_python and bool(live_sessions())
        if not self._steps.choice.kept_alive and not sessions:
            return False
        park_python_functions()
        remove_cut_caches(self._recorder.recording.operations, self._began_s)
        return True

    def script_ended(self, outcome: OwnEnding) -> None:
        """Write the final recording; a forked child and a second call do nothing.

        Where a script ended by itself, pipelines are tried that were not while it ran.
        """
        if os.getpid() != self._pid:
            return
        attempt, over_ns = self._recorder.attempt, time.monotonic_ns()
        attempt("timing the script", self._timeline.closed)
        self._close(f"the script {outcome}")
        environment = self._recorder.recording.environment
        attempt("describing the environment", describe_environment, environment, self._descriptions)
        if outcome in BY_ITSELF:
            self._recorder.save()
            with self._interrupts.heard():
                attempt("trying the pipelines alone", self._steps.try_pipelines_alone)
        self._timeline.passed("aside", over_ns, time.monotonic_ns())
        self._recorder.end(outcome)

    def _leave_now(self) -> None:
        """End a script that swallowed our stop: save, run its exit handlers, and go."""
        self._interrupts.hold()
        self.script_ended("stopped")
        self._teller.tell(Ended("stopped", None))
        self._interrupts.release()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # may be an object of the script's, or None
                stream.flush()
        os._exit(0)


def install_hooks(watchers: Watchers) -> None:
    """Hook into what is imported already, and into the rest as it arrives.

    A hook that does not fit its module is left out, and noted.
    """
    guard = watchers.guard
    hooks = [hook for framework in FRAMEWORKS for hook in framework(watchers).by_module()]

    def arrives() -> None:
        # Not sooner: TensorFlow needs wrapt itself, a script without TensorFlow does not.
        import wrapt

        for module, hook in hooks:
            wrapt.register_post_import_hook(guard.entry(f"hooking into {module}", hook), module)

    if _PACKAGE in sys.modules:
        arrives()
        return
    arrival = _Arrival(guard.entry(f"waiting for {_PACKAGE}", arrives))
    sys.meta_path.insert(0, arrival)
    guard.when("forked", arrival.leave)
    guard.when("dismissed", arrival.leave)


class _Arrival(MetaPathFinder):
    """Finds nothing, but calls `arrives` when the package is about to be imported."""

    def __init__(self, arrives: Callable[[], None]) -> None:
        self._arrives = arrives

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == _PACKAGE and self in sys.meta_path:
            self.leave()
            self._arrives()

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
