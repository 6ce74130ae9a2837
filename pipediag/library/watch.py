"""Measure a program's own training, which goes on as it would: `watch` and `callback`."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal

from pipediag.capture.callsites import call_site, stacks
from pipediag.capture.guard import attempt
from pipediag.capture.link import how_it_ended
from pipediag.errors import PipediagError
from pipediag.library.measurement import ENDS_WHAT_IS_OVER, Measurement
from pipediag.library.notebook import tell
from pipediag.library.result import Result
from pipediag.session.messages import Ended
from pipediag.vocabulary import Call

NOT_LEFT = Ended("raised", 1, "The program exited within its `with` block.")
CUT_OFF = Ended("raised", 1, "`fit` did not finish.")
_NOT_LEFT = (
    "It is still being measured: there is a result once the `with` block is left, or `fit` is over."
)


class Watch:
    """A measurement around code of the program; make it with `pipediag.watch`.

    If pipediag itself fails, the training goes on without a result: one line on standard error says
    so, and `result_missing` says why.

    Attributes:
        result: the result, once the block is left; None if there is none.
        result_missing: the reason why there is no result, as a sentence.
    """

    def __init__(self, out: Path | None, steps: int | None, call: Call = "watch") -> None:
        if steps is not None and steps < 1:
            raise ValueError(f"steps is {steps}; it must be 1 or more, or None.")
        self._out = out
        self._steps = steps
        self._call = call
        self.result: Result | None = None
        self.result_missing: str | None = "Nothing has been measured yet."
        self._pid = 0
        self._measurement: Measurement | None = None

    @property
    def is_open(self) -> bool:
        """True while it measures."""
        return self._measurement is not None

    def __enter__(self) -> Watch:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        self.end(how_it_ended(error))
        return False

    def begin(self, *, within_fit: bool = False) -> None:
        """Put hooks on what the program has imported and will import.

        `within_fit` says that a `fit` of Keras's has begun, which is to be measured to its end.
        """
        site, self._pid = call_site(), os.getpid()

        def begin() -> None:
            self._measurement = Measurement(self._call, site, out=self._out, steps=self._steps)
            if within_fit:
                self._measurement.capture.fit_goes_on()

        self.result, self.result_missing = None, _NOT_LEFT
        self._try("measuring", begin)
        if self.is_open:
            atexit.register(self.end, CUT_OFF if within_fit else NOT_LEFT)

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
            self.result, self.result_missing = measurement.finish(), None

        try:
            self._try("making a session", close)
        finally:
            atexit.unregister(self.end)

    def _try(self, what: str, ours: Callable[[], None]) -> None:
        """Call a function of ours; if it fails, the training goes on."""

        def refused() -> None:
            try:
                ours()
            except PipediagError as error:
                self._give_up(str(error))

        attempt(self._give_up, what, refused)

    def _give_up(self, reason: str) -> None:
        self.result_missing = reason
        with suppress(Exception):
            tell(reason)


def _fits_on(thread: int) -> int:
    """Return how many calls of Keras's `fit` are on the stack of a thread."""
    stack = stacks((thread,)).get(thread, [])
    return sum(code.co_name == "fit" and "keras" in code.co_filename for code, _ in stack)


class WatchingCallback:
    """Measures each `fit` that it is given to; `callback` makes a Keras callback of it.

    Keras does not call it where `fit` raises: that is over when another measurement begins, when
    its result is asked for, or when the program exits.

    Attributes:
        result: the result of the last `fit`, once that is over; None if there is none.
        result_missing: why there is none, as a sentence.
    """

    _running: ClassVar[tuple[Watch, int] | None] = None
    """Watch that measures a `fit`, and the thread of that."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    @property
    def result(self) -> Result | None:
        self.end_if_over()
        return self._watch.result

    @property
    def result_missing(self) -> str | None:
        self.end_if_over()
        return self._watch.result_missing

    @classmethod
    def end_if_over(cls, began_in: int | None = None) -> None:
        """End what measures a `fit` that raised; another one has just begun in `began_in`."""
        if cls._running is not None:
            watch, thread = cls._running
            if _fits_on(thread) <= (began_in == thread):
                cls._running = None
                watch.end(CUT_OFF)

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras's
        """Begin when `fit` has its data and makes its first step next."""
        thread = threading.get_ident()
        self.end_if_over(thread)
        if WatchingCallback._running is None or WatchingCallback._running[0] is not self._watch:
            self._watch.begin(within_fit=True)
        if self._watch.is_open and WatchingCallback._running is None:
            WatchingCallback._running = self._watch, thread

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras's
        """End after the last step."""
        if WatchingCallback._running is not None and WatchingCallback._running[0] is self._watch:
            WatchingCallback._running = None
        self._watch.end(Ended("finished", 0))


ENDS_WHAT_IS_OVER.append(WatchingCallback.end_if_over)


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
    packages = (getattr(sys.modules.get(name), "callbacks", None) for name in ("keras", "tf_keras"))
    found = (getattr(callbacks, "Callback", None) for callbacks in packages)
    bases = tuple(one for one in found if isinstance(one, type))
    if not bases:
        raise PipediagError(
            "Keras is not imported, so nothing would call a callback. Import it first."
        )
    kind = type("PipediagCallback", (WatchingCallback, *bases), {"__module__": __name__})
    return kind(Watch(None if out is None else Path(out), steps, "callback"))
