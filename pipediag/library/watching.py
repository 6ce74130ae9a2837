"""Measuring a program's own training, which goes on as it would: `watch`, and a Keras callback."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

from pipediag.capture.callsites import CallSite, call_site
from pipediag.capture.guard import attempt
from pipediag.errors import PipediagError
from pipediag.library.alongside import Alongside, Wishes
from pipediag.library.before_exit import before_exit, nothing_left
from pipediag.library.cells import when_cell_ends
from pipediag.library.result import Result
from pipediag.library.telling import tell
from pipediag.session.messages import Ended
from pipediag.vocabulary import Call


class OwnThread:
    """Runs one call; the interpreter does not wait for it when it exits.

    Raises:
        RuntimeError: the process may have no more threads.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._ident: int | None = None
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        self._ident = threading.get_ident()
        try:
            self._call()
        finally:
            del self._call  # and with it all that it holds
            self._ended.release()

    def join(self) -> None:
        """Wait until it is through; called by itself, do nothing."""
        if self._ident != threading.get_ident():
            with self._ended:
                pass


_LONGEST_ERROR = 10_000
"""Characters of an error that are kept, as the command keeps them."""
CUT_OFF = Ended("raised", 1, "`fit` did not come to its end.")
NOT_LEFT = Ended("raised", 1, "The program exited before its `with` block was left.")
_NOT_LEFT = "It is still measured: there is a result once the `with` block is left."


class Fit(Protocol):
    """A call of Keras's that runs, or has been left by an exception."""

    def runs(self) -> bool: ...

    def when_gone(self, call: Callable[[], None]) -> None:
        """Have it called as soon as nothing of the call is there any more."""


class Measurement(Protocol):
    """One or several, that have begun."""

    def fit_goes_on(self) -> None: ...

    def step_aside(self) -> None:
        """No hook does anything from here on; `leave` is still to come."""

    def leave(self, ended: Ended, *, when_wanted: Callable[[], None] | None = None) -> None:
        """Take the hooks off.

        `when_wanted` is called when another measurement wants its turn before this has finished.
        """

    def finish(self) -> Result: ...

    def give_up(self) -> None: ...


class Watch:
    """A measurement around code of the program's own; make it by `pipediag.watch`.

    Whatever goes wrong on our side, the training goes on: there is no result then, one line on
    standard error says so, and `result_missing` why.

    A block that is left by an exception is not kept waiting: its hooks come off, which takes a
    second at most but for a large profile, and the session is made while the program's own `except`
    and `finally` run. `result` waits for it, and so do another measurement and the program's exit.
    """

    def __init__(self, wishes: Wishes, call: Call = "watch") -> None:
        self._result: Result | None = None
        self._result_missing: str | None = "Nothing was measured yet."
        self._meanwhile: OwnThread | None = None
        """Makes the session of a measurement that an exception has ended."""
        self._wishes = wishes
        self._call = call
        self._pid = os.getpid()
        self._measurement: Measurement | None = None
        self._entered = 0

    @property
    def result(self) -> Result | None:
        """What came of it, once the block is left; None where there is nothing."""
        self._wait()
        return self._result

    @property
    def result_missing(self) -> str | None:
        """Why there is none, as a sentence."""
        self._wait()
        return self._result_missing

    def __enter__(self) -> Watch:
        self._entered += 1
        if self._entered == 1:
            self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        self._entered -= 1
        if self._entered:
            return False
        if error is None:
            self.end(how_it_ended(None))
        else:
            self.end_by(error)
        return False

    def begin(self) -> None:
        """Hook onto what the program has imported, and onto what it will."""
        site = call_site()

        def begin() -> None:
            self._measurement = self._begun(site)

        self._begin(begin)

    def begin_in_fit(self, fit: Fit) -> None:
        """The same, in a `fit` of Keras's that has begun."""
        site = call_site()

        def end_if_over() -> None:
            if not fit.runs():
                self.end(CUT_OFF)
                self._wait()

        def begin() -> None:
            self._measurement = self._begun(site, end_if_over)
            self._measurement.fit_goes_on()
            # A notebook keeps the frames of the last error, and what is theirs.
            when_cell_ends(end_if_over)
            # Keras tells a callback nothing of a `fit` that raises; its list goes with its frame.
            fit.when_gone(self._gone)

        self._begin(begin)

    def _begin(self, begin: Callable[[], None]) -> None:
        self._wait()
        self._result, self._result_missing = None, _NOT_LEFT
        self._try("measuring", begin)
        if self.is_open:
            before_exit(self, self._at_exit)

    @property
    def is_open(self) -> bool:
        """Whether it is measuring."""
        return self._measurement is not None

    def end(self, ended: Ended) -> None:
        """Take the hooks off and wait for the session; a second call, or one in a forked child,
        does nothing."""
        measurement = self._taken()
        if measurement is not None:
            self._end(measurement, ended)

    def end_by(self, error: BaseException) -> None:
        """Take the hooks off at once, and have the session made while the program sees to this."""
        measurement = self._taken()
        if measurement is None:
            return

        finish = partial(self._try, "making a session", partial(self._finish, measurement))

        def end() -> None:
            self._leave(measurement, how_it_ended(error), when_wanted=self._wait)
            try:
                self._meanwhile = OwnThread(finish)
            except BaseException:
                self._drop(measurement)
                raise

        self._try("making a session", end)

    def _gone(self) -> None:
        """A `fit` that raised has let go of what it had: told in a finalizer of Python's, where
        Ctrl-C and what a signal handler raises would be lost. So nothing there takes any time."""
        measurement = self._taken()
        if measurement is not None:
            measurement.step_aside()
            try:
                self._meanwhile = OwnThread(partial(self._end, measurement, CUT_OFF))
            except BaseException:
                self._measurement = measurement  # the program's exit ends it
                raise

    def _at_exit(self) -> None:
        self.end(NOT_LEFT if self._entered else CUT_OFF)
        self._wait()

    def _taken(self) -> Measurement | None:
        """The one that is under way, if it is this process's: it is to be ended once."""
        measurement, self._measurement = self._measurement, None
        return measurement if os.getpid() == self._pid else None

    def _end(self, measurement: Measurement, ended: Ended) -> None:
        def end() -> None:
            self._leave(measurement, ended)
            self._finish(measurement)

        self._try("making a session", end)

    def _leave(
        self,
        measurement: Measurement,
        ended: Ended,
        *,
        when_wanted: Callable[[], None] | None = None,
    ) -> None:
        try:
            measurement.leave(ended, when_wanted=when_wanted)
        except BaseException:
            self._drop(measurement)
            raise

    def _drop(self, measurement: Measurement) -> None:
        measurement.give_up()
        nothing_left(self)

    def _finish(self, measurement: Measurement) -> None:
        try:
            self._result, self._result_missing = measurement.finish(), None
        finally:
            nothing_left(self)

    def _wait(self) -> None:
        """Until a session is there that is made meanwhile."""
        if self._meanwhile is not None and os.getpid() == self._pid:
            self._meanwhile.join()

    def _begun(
        self, site: CallSite | None, end_if_over: Callable[[], None] | None = None
    ) -> Measurement:
        return Alongside(self._wishes, self._call, site, end_if_over)

    def _try(self, what: str, ours: Callable[[], None]) -> None:
        """Whatever of ours fails, the training goes on."""

        def refused() -> None:
            try:
                ours()
            except PipediagError as error:
                self._give_up(str(error))

        attempt(self._give_up, what, refused)

    def _give_up(self, reason: str) -> None:
        self._result_missing = reason
        with suppress(Exception):
            tell(reason)


def watch(
    out: str | PathLike[str] | None = None,
    *,
    steps: int | None = None,
) -> Watch:
    """Measure the training inside a `with` block, which goes on to its own end.

    What `pipediag analyze --run-to-end` does with a script is done here with the block: warm-up, a
    window without a profiler, a profile. Nothing is tried in it: `pipediag analyze --rerun` tries
    changes in a second run of a script. Leaving the block takes all hooks off and waits for the
    session; left by an exception it does not wait: see `Watch`.

    Args:
        out: the directory of the report; an earlier one is kept aside. None writes none, and the
            result can be saved.
        steps: measured steps; None lets it depend on how long they take.

    Raises:
        ValueError: a number that nobody can be given. All else leaves the training unmeasured, and
            `result_missing` of the watch says why.
    """
    where = None if out is None else Path(out)
    return Watch(Wishes(where, steps))


def how_it_ended(error: BaseException | None) -> Ended:
    """What is told of a block that was left by an exception, or by none."""
    if error is None:
        return Ended("finished", 0)
    if isinstance(error, SystemExit):
        return Ended("exited", _status_of(error))
    description = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    if isinstance(error, KeyboardInterrupt):
        return Ended("interrupted", -signal.SIGINT, description)
    return Ended("raised", 1, description)


def _status_of(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1
