"""One measurement after another of a training that goes on, with all hooks off between two."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from pipediag.capture.callsites import CallSite
from pipediag.capture.guard import attempt, sentence
from pipediag.capture.signal_handlers import let_pass
from pipediag.errors import PipediagError
from pipediag.library.alongside import Alongside, Wishes
from pipediag.library.intervals.directories import Directories
from pipediag.library.own_thread import OwnThread
from pipediag.library.result import Result
from pipediag.library.telling import tell
from pipediag.session.messages import Ended
from pipediag.vocabulary import Call

_OVER = Ended("finished", None)
"""One measurement of several: the training goes on."""
_NOTHING = "no measurement of this training came to its end."


class Came(Protocol):
    """Hears of each result, with its number, on a thread of ours or at the end."""

    def __call__(self, result: Result, number: int) -> None: ...


class Measurements:
    """From the first to the last. Only the last one may end before it is through.

    The first begins at once. Each takes its hooks off itself, on the thread that trains, as soon
    as a loop is measured; a thread of ours waits for the session, and for the time of the next.
    """

    def __init__(
        self,
        wishes: Wishes,
        call: Call,
        site: CallSite | None,
        end_if_over: Callable[[], None] | None = None,
        *,
        came: Came,
    ) -> None:
        """Begin.

        Raises:
            PipediagError: nothing can be measured here.
        """
        self._wishes = wishes
        self._begin_one = partial(Alongside, call=call, site=site, end_if_over=end_if_over)
        self._came = came
        self._every_s = wishes.every_s or 0.0
        self._directories = Directories(wishes.out)
        # The end of a `fit` may be told by the garbage collector, on a thread that holds it.
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._under_way: Alongside | None = None
        self._cut: Alongside | None = None
        """What was under way when the training was over."""
        self._number = 0
        self._waiting: OwnThread | None = None
        self._last: Result | None = None
        self._why_none = _NOTHING
        with self._lock:
            self._begin()

    def fit_goes_on(self) -> None:
        """A `fit` of Keras's, which has begun, is what is measured."""
        if self._under_way is not None:
            self._under_way.fit_goes_on()

    def step_aside(self) -> None:
        """No hook does anything from here on; `leave` is still to come."""
        under_way = self._under_way
        if under_way is not None:
            under_way.step_aside()

    def leave(self, ended: Ended, *, when_wanted: Callable[[], None] | None = None) -> None:
        """The training is over: no hook of ours is left."""
        self._over.set()
        with self._lock:
            self._cut, self._under_way = self._under_way, None
        if self._cut is not None:
            self._cut.leave(ended, when_wanted=when_wanted)

    def finish(self) -> Result:
        """No thread of ours is left either.

        A measurement that was not through by then counts only where it is the first.

        Raises:
            PipediagError: there is no session.
        """
        if self._waiting is not None:
            self._waiting.join()
        cut, self._cut = self._cut, None
        if cut is not None and self._last is None:
            self._keep(cut.finish())
        elif cut is not None:
            cut.give_up()
        if self._last is None:
            raise PipediagError(self._why_none)
        return self._last

    def give_up(self) -> None:
        """What was cut off is wanted no more."""
        if self._cut is not None:
            self._cut.give_up()

    def _begin(self) -> None:
        self._due_s = time.monotonic() + self._every_s
        self._number, out = self._directories.next()
        try:
            self._under_way = self._begin_one(
                replace(self._wishes, out=out),
                interval=self._number,
                when_measured=self._measured,
            )
        except BaseException:
            self._directories.given_up(self._number)
            raise

    def _measured(self) -> None:
        """Between two steps, on the thread that trains."""
        with self._lock:
            measured, self._under_way = self._under_way, None
            if measured is None:
                return
            try:
                measured.leave(_OVER)
                self._waiting = OwnThread(partial(self._until_next, measured))
            except BaseException as error:
                measured.give_up()
                if not isinstance(error, Exception):
                    raise
                let_pass(error)
                self._failed(sentence("measuring", error))

    def _until_next(self, measured: Alongside) -> None:
        """On a thread of ours."""
        attempt(self._failed, "making a session", self._finish, measured)
        while not self._over.wait(max(0.0, self._due_s - time.monotonic())):
            if self._has_begun_another():
                return

    def _finish(self, measured: Alongside) -> None:
        try:
            self._keep(measured.finish())
        except PipediagError as error:
            self._failed(str(error))

    def _has_begun_another(self) -> bool:
        """Where it could not, it is tried again when the next one is due."""
        with self._lock:
            if self._over.is_set():
                return True
            try:
                self._begin()
            except PipediagError as error:
                self._failed(str(error))
                return False
            except Exception as error:  # noqa: BLE001 - the training goes on
                self._failed(sentence("measuring", error))
                return False
            if self._over.is_set() and self._under_way is not None:
                # It ended meanwhile, and found nothing to end.
                last, self._under_way = self._under_way, None
                _drop(last)
            return True

    def _keep(self, result: Result) -> None:
        self._last = result
        self._came(result, self._number)
        try:
            self._directories.add(result.session, self._number)
        except OSError as error:
            self._failed(f"this measurement is missing in the list of intervals: {error.strerror}.")

    def _failed(self, reason: str) -> None:
        self._why_none = reason
        tell(reason)


def _drop(unfinished: Alongside) -> None:
    unfinished.leave(_OVER)
    unfinished.give_up()
