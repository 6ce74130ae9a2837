"""Measure a program's own training, which goes on as it would: `watch`, and a Keras callback."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Literal

from pipediag.capture.callsites import call_site, current_frames, locals_of
from pipediag.capture.guard import attempt
from pipediag.capture.link import how_it_ended
from pipediag.errors import PipediagError
from pipediag.library.measurement import Measurement
from pipediag.library.notebook import tell, when_cell_ends
from pipediag.library.result import Result
from pipediag.session.messages import Ended
from pipediag.vocabulary import Call

CUT_OFF = Ended("raised", 1, "`fit` did not finish.")
NOT_LEFT = Ended("raised", 1, "The program exited within its `with` block.")
_NOT_LEFT = "It is still being measured: there is a result once the `with` block is left."


class Watch:
    """A measurement around code of the program; make it with `pipediag.watch`.

    If pipediag itself fails, the training goes on without a result: one line on standard error says
    so, and `result_missing` says why.
    """

    def __init__(self, out: Path | None, steps: int | None, call: Call = "watch") -> None:
        if steps is not None and steps < 1:
            raise ValueError(f"steps is {steps}; it must be 1 or more, or None.")
        self._out = out
        self._steps = steps
        self._call = call
        self._result: Result | None = None
        self._result_missing: str | None = "Nothing has been measured yet."
        self._pid = os.getpid()
        self._measurement: Measurement | None = None
        self._fit: Fit | None = None
        self._entered = 0

    @property
    def result(self) -> Result | None:
        """The result, once the block is left; None if there is none."""
        self._end_if_over()
        return self._result

    @property
    def result_missing(self) -> str | None:
        """The reason why there is no result, as a sentence."""
        self._end_if_over()
        return self._result_missing

    @property
    def is_open(self) -> bool:
        """True while it measures."""
        return self._measurement is not None

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
        if not self._entered:
            self.end(how_it_ended(error))
        return False

    def begin(self, fit: Fit | None = None) -> None:
        """Put hooks on what the program has imported and will import.

        `fit` is a call of Keras's that has begun, where that is to be measured.
        """
        site = call_site()

        def begin() -> None:
            over = None if fit is None else self._end_if_over
            self._measurement = Measurement(
                self._call, site, out=self._out, steps=self._steps, end_if_over=over
            )
            if fit is not None:
                self._measurement.capture.fit_goes_on()
                # A notebook keeps the frames of the last error, and what they hold.
                when_cell_ends(self._end_if_over)
                # Keras does not call the callback if `fit` raises; its list goes with its frame.
                # That is in a finalizer, in which Ctrl-C would be lost: the session is made later.
                fit.when_gone(self._measurement.capture.step_aside)

        self._end_if_over()
        self._fit = fit
        self._result, self._result_missing = None, _NOT_LEFT
        self._try("measuring", begin)
        if self.is_open:
            atexit.register(self._end_at_exit)

    def _end_at_exit(self) -> None:
        self.end(NOT_LEFT if self._entered else CUT_OFF)

    def end(self, ended: Ended) -> None:
        """Take the hooks off and wait for the session; a second call, or one in a forked child,
        does nothing."""
        measurement, self._measurement = self._measurement, None
        if measurement is None or os.getpid() != self._pid:
            return

        def close() -> None:
            try:
                measurement.leave(ended)
            except BaseException:
                measurement.give_up()
                raise
            self._result, self._result_missing = measurement.finish(), None

        try:
            self._try("making a session", close)
        finally:
            atexit.unregister(self._end_at_exit)

    def _end_if_over(self) -> None:
        """End the measurement of a `fit` that raised, after which Keras calls no callback."""
        if self._fit is not None and not self._fit.runs():
            self.end(CUT_OFF)

    def _try(self, what: str, ours: Callable[[], None]) -> None:
        """Call a function of ours; if it fails, the training goes on."""

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


class Fit:
    """A call of Keras's `fit`, found from a frame of its callback."""

    def __init__(self, frame: FrameType | None) -> None:
        self._thread = threading.get_ident()
        self._code: CodeType | None = None
        self._callbacks: weakref.ref[Any] | None = None
        """Keras's list of callbacks, which goes with the call's frame."""
        while frame is not None:
            if frame.f_code.co_name == "on_train_begin":
                owner = locals_of(frame).get("self")
                self._callbacks = weakref.ref(owner) if hasattr(owner, "callbacks") else None
            if frame.f_code.co_name == "fit":
                self._code = frame.f_code
                return
            frame = frame.f_back

    def when_gone(self, call: Callable[[], None]) -> None:
        """Have this called as soon as nothing of the call exists any more."""
        callbacks = self._callbacks() if self._callbacks is not None else None
        if callbacks is not None:
            # The watch itself ends it at the program's exit, where it can be waited for.
            weakref.finalize(callbacks, call).atexit = False

    def runs(self) -> bool:
        """Return True if the call is on the stack of its thread."""
        if self._callbacks is not None and self._callbacks() is None:
            return False  # what is on the stack is another call
        frame = current_frames().get(self._thread)
        while frame is not None:
            if frame.f_code is self._code:
                return True
            frame = frame.f_back
        return False


class WatchingCallback:
    """Measures each `fit` that it is given to; `callback` makes a Keras callback of it.

    Attributes:
        result: the result of the last `fit`, once that is over; None if there is none.
        result_missing: why there is none, as a sentence.
    """

    def __init__(self, out: Path | None, steps: int | None) -> None:
        super().__init__()
        self._new_watch = partial(Watch, out, steps, "callback")
        self._watch: Watch | None = None

    @property
    def result(self) -> Result | None:
        return None if self._watch is None else self._watch.result

    @property
    def result_missing(self) -> str | None:
        return "No `fit` was called with it." if self._watch is None else self._watch.result_missing

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras's
        """Begin when `fit` has its data and makes its first step next."""
        self._watch = self._new_watch()
        self._watch.begin(Fit(sys._getframe(1)))

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras's
        """End after the last step."""
        if self._watch is not None:
            self._watch.end(Ended("finished", 0))


def watch(out: str | PathLike[str] | None = None, *, steps: int | None = None) -> Watch:
    """Measure the training inside a `with` block, which runs to its own end.

    This does for the block what `pipediag analyze --run-to-end` does for a script: warm-up, a
    window without a profiler, a profile. Nothing is tried: `pipediag analyze --rerun` tries changes
    in a second run of a script. Leaving the block removes all hooks and waits for the session.

    Args:
        out: directory of the report; an earlier report is kept under another name. None writes no
            report; the result can be saved later.
        steps: measured steps; None adapts to their length.

    Raises:
        ValueError: a number is out of range. After any other problem the training goes on without
            being measured, and `result_missing` of the watch says why.
    """
    return Watch(None if out is None else Path(out), steps)


def callback(out: str | PathLike[str] | None = None, *, steps: int | None = None) -> Any:
    """Return a Keras callback that measures each `fit` as `pipediag.watch` does.

    Afterwards its `result` and `result_missing` are those of the last `fit`.

    Args:
        out: as for `pipediag.watch`.
        steps: as for `pipediag.watch`.

    Raises:
        ValueError: a number is out of range.
        PipediagError: Keras is not imported.
    """
    first = watch(out, steps=steps)  # refuses wrong arguments here, and not in `fit`
    packages = (getattr(sys.modules.get(name), "callbacks", None) for name in ("keras", "tf_keras"))
    found = (getattr(callbacks, "Callback", None) for callbacks in packages)
    bases = tuple(one for one in found if isinstance(one, type))
    if not bases:
        raise PipediagError(
            "Keras is not imported, so nothing would call a callback. Import it first."
        )
    kind = type("PipediagCallback", (WatchingCallback, *bases), {"__module__": __name__})
    return kind(first._out, steps)
