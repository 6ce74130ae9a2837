"""The parent's side of a run: starts the child, watches over it, says how it ended."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from pipediag.encoding import without_styles
from pipediag.errors import PipediagError
from pipediag.runner.child_connection import (
    LONGEST_IN_JOB_S,
    LONGEST_S,
    MessageReader,
    OnTrials,
    Patience,
    activity_of,
)
from pipediag.runner.progress import Notice, OnProgress, awaited_after
from pipediag.runner.signals import HeldSignals, are_interrupts_blocked, describe_death
from pipediag.session.messages import (
    SETTINGS_FILE,
    Answer,
    ChildResult,
    Closing,
    Command,
    Ended,
    EndTrials,
    FromChild,
    Leaving,
    NotSaved,
    Refused,
    RunSettings,
    Started,
    Stopping,
    TrialsAwaited,
    TrialsOver,
    WindowBegun,
    encode,
)
from pipediag.session.worker import worker_of
from pipediag.trials import ExecutorLostError, ScriptFinishedError
from pipediag.vocabulary import ScriptOutcome


class Watched(Protocol):
    """A process that runs what is measured: what the watch needs of `subprocess.Popen`."""

    pid: int

    @property
    def returncode(self) -> Any: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...
    def send_signal(self, sig: int) -> None: ...


def end_process_tree(process: Watched, grace_s: float) -> None:
    """Send SIGTERM to the process, then SIGKILL to it and to whatever it had started."""
    import psutil

    started_by_it: list[psutil.Process] = []
    with suppress(psutil.Error):
        started_by_it = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
    for descendant in started_by_it:
        with suppress(psutil.Error):
            descendant.kill()


def same_interpreter() -> list[str]:
    """Return this interpreter with the options that it was given, as `multiprocessing` does."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    unbuffered = getattr(sys.__stdout__, "write_through", False)
    return [sys.executable, *flags, *(["-u"] if unbuffered else [])]


TERMINATE_GRACE_S = 5.0
"""Longest time that a script which timed out may take over SIGTERM."""

AWAITED_AFTER_S = 30.0
"""Own choice: as long as a person watches a run without a word and does not wonder."""

WATCH_INTERVAL_S = 0.1
CHILD = Path(__file__).parents[1] / "child" / "start.py"

_Kind = TypeVar("_Kind")


def follow(
    process: Watched,
    messages: MessageReader,
    commands: int | None,
    *,
    on_started: Callable[[int], None],
    on_progress: OnProgress,
    on_trials: OnTrials | None,
) -> ChildResult:
    """Watch over a program that was there before us and goes on, until it is measured."""
    on_started(process.pid)
    watch = _Watch(process, messages, on_progress, commands, on_trials)
    watch.until_exit()
    return watch.result()


def supervise(
    settings: RunSettings,
    *,
    timeout_s: float | None,
    on_started: Callable[[int], None],
    on_progress: OnProgress,
    on_trials: OnTrials | None = None,
    json_mode: bool = False,
) -> ChildResult:
    """Run the script in a child of the same interpreter until it has ended, by itself or by us.

    `on_trials` is called whenever a measured loop waits for what to try, with a function that asks
    it; without, no loop waits. With `json_mode` the script's standard output goes to standard
    error. Raises PipediagError: the child could not start the script at all.
    """
    reading, writing = os.pipe()
    command_fd, commands = os.pipe() if on_trials is not None else (None, None)
    theirs = [one for one in (writing, command_fd) if one is not None]
    ours = [one for one in (reading, commands) if one is not None]
    for descriptor in theirs:
        os.set_inheritable(descriptor, True)
    settings_path = Path(settings.capture_directory) / SETTINGS_FILE
    replace(
        settings,
        progress_fd=writing,
        command_fd=command_fd,
        unblock_interrupts=not are_interrupts_blocked(),
    ).write(settings_path)
    command = [*same_interpreter(), str(CHILD), str(settings_path)]
    try:
        with HeldSignals() as signals:
            sys.stdout.flush()
            process = subprocess.Popen(
                command,
                stdout=sys.stderr.fileno() if json_mode else None,
                # The script may have been given descriptors by its caller, as in `3<file`.
                close_fds=False,
                preexec_fn=partial(signals.prepare, signal.SIGINT),  # noqa: PLW1509 - no other thread runs yet
            )
            while theirs:
                os.close(theirs.pop())
            on_started(process.pid)
            pipes = (MessageReader(reading), on_progress, commands, on_trials)
            lingers = settings.run_to_end
            watch = _Watch(process, *pipes, signals, timeout_s, ends_what_lingers=not lingers)
            try:
                watch.until_exit()
            except BaseException:
                process.kill()
                process.wait()
                raise
    finally:
        for descriptor in (*ours, *theirs):
            os.close(descriptor)
    return watch.result()


_ByUs = Literal["timed-out", "hung-in-exit", "stopped", "killed"]
_WHY_ENDED_BY_US: dict[_ByUs, str] = {
    "timed-out": "It was stopped after {limit_s:g} s, the limit set by --timeout.",
    "killed": "It was interrupted while it exited, did not end, and was killed.",
    "hung-in-exit": "Its code had finished, but the interpreter did not exit and was killed. A "
    "pipeline that is still running Python functions can cause this.",
    "stopped": "Pipediag killed it after its measurements, because it did not stop when asked.",
}


@dataclass
class _Watch:
    _process: Watched
    _messages: MessageReader
    _on_progress: OnProgress
    _commands: int | None
    _on_trials: OnTrials | None
    _signals: HeldSignals | None = None
    """Signals to pass on to it."""
    _timeout_s: float | None = None
    ends_what_lingers: bool = True
    """False for a script that runs to its end: only `--timeout` and its own signals end it."""

    def __post_init__(self) -> None:
        self._started_ns = time.monotonic_ns()
        limit_s = math.inf if self._timeout_s is None else self._timeout_s
        self._timeout_at = time.monotonic() + limit_s
        longest_s = LONGEST_S if worker_of() is None else LONGEST_IN_JOB_S
        self._patience = Patience(partial(activity_of, self._process.pid), longest_s=longest_s)
        self._awaited: Notice | None = None
        self._awaited_since = 0.0
        self._received: dict[type, FromChild] = {}
        self._ended_ns: int | None = None
        self._ended_by_us: _ByUs | None = None
        self._waiting_for_trials: TrialsAwaited | None = None
        self._exited: list[int] = []
        self._answer: Answer | None = None
        self._lost_in_trial: str | None = None
        self._held_ns: int | None = None
        self._ends_by_itself = False
        """True while trials are made that do not end the script, as it goes on or is over already.
        """

    def until_exit(self) -> None:
        # Readable once the process exits; old kernels have none.
        with suppress(OSError):
            self._exited = [os.pidfd_open(self._process.pid)]
        # What came before the script began is there when it begins, however soon that is.
        self._pass_signals_on()
        try:
            while self._process.poll() is None:
                self._look(self._exited, WATCH_INTERVAL_S)
                self._try_what_helps()
        finally:
            for descriptor in self._exited:
                os.close(descriptor)
        self._read_messages()
        self._ended_ns = self._ended_ns or time.monotonic_ns()

    def ask(self, command: Command, limit_s: float) -> Answer:
        """See `Ask`."""
        assert self._commands is not None
        self._answer = None
        give_up_at = time.monotonic() + limit_s
        try:
            os.write(self._commands, encode(command))
        except OSError:
            raise ExecutorLostError("the script's process is gone.") from None
        while self._answer is None:
            if self._process.poll() is not None:
                self._read_messages()
                raise self._lost(self._why_gone())
            if over := self._last(TrialsOver):
                ended = f"they were ended: {over.reason}."
                if over.is_end_of_script:
                    raise ScriptFinishedError(ended)
                # How a script ends that goes on, or is over, is its own doing.
                raise ExecutorLostError(ended) if self._ends_by_itself else self._lost(ended)
            if time.monotonic() > give_up_at:
                self._ended_by_us = "stopped"
                self._process.kill()
                raise self._lost(f"it did not respond within {limit_s:.0f} s.")
            self._look([*self._exited, self._messages.descriptor], WATCH_INTERVAL_S)
        return self._answer

    def _look(self, descriptors: list[int], seconds: float) -> None:
        """Wait until one is readable, then see to events, signals and limits."""
        select.select(descriptors, [], [], seconds)
        self._read_messages()
        self._pass_signals_on()
        self._enforce_limits()

    def _pass_signals_on(self) -> None:
        for number in self._signals.to_forward() if self._signals is not None else ():
            self._process.send_signal(number)

    def _try_what_helps(self) -> None:
        waiting, self._waiting_for_trials = self._waiting_for_trials, None
        if waiting is None or self._on_trials is None or self._commands is None:
            return
        self._ends_by_itself = waiting.alone or waiting.more_to_come
        self._held_ns = time.monotonic_ns()
        try:
            self._on_trials(waiting, self.ask)
        finally:
            # A child that has ended them reads no more until it waits anew, and would end those.
            if self._last(TrialsOver) is not None or self._let_go(self._commands):
                self._held_ns = None
            if waiting.alone:
                self._patience.stopping()

    def _let_go(self, commands: int) -> bool:
        """Let a waiting child go on; return True if it is still there."""
        try:
            os.write(commands, encode(EndTrials()))
        except OSError:
            return False
        # A process that was killed may still be torn down for a while.
        return self._ended_by_us is None and self._process.poll() is None

    def _lost(self, why: str) -> ExecutorLostError:
        self._lost_in_trial = why
        return ExecutorLostError(why)

    def _why_gone(self) -> str:
        if self._ended_by_us == "timed-out":
            return "the time allowed by --timeout was up."
        status = self._process.returncode
        if status < 0:
            return describe_death(-status)
        return f"the script ended with status {status}."

    def result(self) -> ChildResult:
        """Return how the child ended."""
        self._check_started()
        outcome, status, detail = self._ending()
        if lost := self._last(NotSaved):
            loss = f"Its last recording could not be saved: {lost.message}."
            detail = f"{detail} {loss}" if detail else loss
        assert self._ended_ns is not None
        return ChildResult(outcome, status, detail, self._started_ns, self._ended_ns, self._held_ns)

    def _read_messages(self) -> None:
        for message in self._messages.read():
            self._received[type(message)] = message
            if isinstance(message, Answer):
                self._answer = message
                continue
            self._follow(message)
            self._on_progress(message)

    def _last(self, kind: type[_Kind]) -> _Kind | None:
        message = self._received.get(kind)
        return message if isinstance(message, kind) else None

    def _follow(self, message: FromChild) -> None:
        if awaited := awaited_after(message):
            self._awaited, self._awaited_since = awaited, time.monotonic()
        elif isinstance(message, WindowBegun | TrialsAwaited | Leaving):
            self._awaited = None
        match message:
            case TrialsAwaited():
                self._received.pop(TrialsOver, None)
                self._waiting_for_trials = message
                self._patience.running()
            case Ended(outcome):
                self._ended_ns = time.monotonic_ns()
                if outcome == "stopped":
                    self._patience.stopping()
            case Stopping() | Closing():
                self._patience.stopping()
            case Leaving():
                self._patience.leaving()

    def _enforce_limits(self) -> None:
        timed_out = time.monotonic() > self._timeout_at
        lingers = self.ends_what_lingers and self._patience.is_over()
        if lingers or (timed_out and self._patience.stage != "running"):
            self._ended_by_us = "hung-in-exit" if Ended in self._received else "stopped"
            if self._ended_by_us == "stopped" and Closing in self._received:
                # Where it began to leave without a word, its end was cut off, and nobody asked it
                # to stop.
                self._ended_by_us = "stopped" if Stopping in self._received else "killed"
            self._timeout_at = math.inf
            self._patience.running()
            self._process.kill()
        elif timed_out:
            self._timeout_at = math.inf
            self._ended_by_us = "timed-out"
            end_process_tree(self._process, TERMINATE_GRACE_S)
        elif self._awaited and time.monotonic() - self._awaited_since > AWAITED_AFTER_S:
            awaited, self._awaited = self._awaited, None
            self._on_progress(awaited)

    def _check_started(self) -> None:
        if refused := self._last(Refused):
            raise PipediagError(f"cannot run it: {refused.message}.")
        if Started not in self._received and self._ended_by_us is None:
            raise PipediagError(
                f"the child interpreter {sys.executable} ended with status "
                f"{self._process.returncode} before the script was run; see its message above."
            )

    def _ending(self) -> tuple[ScriptOutcome, int | None, str | None]:
        # Imported once the script is over, as it would start later for what that brings along.
        from pipediag.facts.script import ended_from_outside

        status = self._process.returncode
        reported = self._last(Ended)
        ended = reported or Ended("exited", status)
        outcome: ScriptOutcome = ended.outcome
        own, detail = status, ended.error and without_styles(ended.error)
        if self._ended_by_us is not None:
            outcome, own = self._ended_by_us, reported.status if reported else None
            detail = _WHY_ENDED_BY_US[self._ended_by_us].format(limit_s=self._timeout_s)
        elif outcome == "stopped":
            own = detail = None
        elif status < 0 and outcome != "interrupted":
            outcome, detail = "killed", describe_death(-status)
        lost = self._lost_in_trial is not None and status != 0
        if lost and not ended_from_outside(outcome, own):
            return "stopped", None, f"A trial ended it: {self._lost_in_trial}"
        return outcome, own, detail
