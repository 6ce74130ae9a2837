"""A Keras callback that measures the `fit` it is given to."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from pipediag.capture.python_functions import locals_of
from pipediag.errors import PipediagError
from pipediag.library.alongside import Wishes
from pipediag.library.result import Result
from pipediag.library.watching import Watch
from pipediag.session.messages import Ended

_PACKAGES = ("keras", "tf_keras")


class WatchingCallback:
    """From the beginning of a training to its end; made a callback of Keras's by `callback`.

    Attributes:
        result: of the last `fit`, once that is over; None where there is nothing.
        result_missing: why there is none, as a sentence.
    """

    def __init__(self, wishes: Wishes) -> None:
        super().__init__()
        self._wishes = wishes
        self._watch: Watch | None = None

    @property
    def result(self) -> Result | None:
        return None if self._watch is None else self._watch.result

    @property
    def result_missing(self) -> str | None:
        return "No `fit` was called with it." if self._watch is None else self._watch.result_missing

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras's
        """The `fit` has its data, and makes its first step next."""
        self._watch = Watch(self._wishes, "callback")
        self._watch.begin_in_fit(_Fit(sys._getframe(1)))

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras's
        """The last step is over."""
        if self._watch is not None:
            self._watch.end(Ended("finished", 0))


class _Fit:
    """The call that a callback's frame is in."""

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
        callbacks = self._callbacks() if self._callbacks is not None else None
        if callbacks is not None:
            # The program's exit ends it by itself, where it can be waited for.
            weakref.finalize(callbacks, call).atexit = False

    def runs(self) -> bool:
        """Whether such a call is on its thread's stack."""
        frame = sys._current_frames().get(self._thread)
        while frame is not None:
            if frame.f_code is self._code:
                return True
            frame = frame.f_back
        return False


def callback(
    out: str | PathLike[str] | None = None,
    *,
    steps: int | None = None,
) -> Any:
    """Measure a `fit` as `pipediag.watch` does: give it to `callbacks`.

    It has `result` and `result_missing` of the last `fit` afterwards.

    Args:
        out: as all others, see `pipediag.watch`.

    Raises:
        ValueError: a number that nobody can be given.
        PipediagError: Keras is not imported.
    """
    where = None if out is None else Path(out)
    wishes = Wishes(where, steps)
    bases = tuple(filter(None, map(_callback_class, _PACKAGES)))
    if not bases:
        raise PipediagError(
            "Keras is not imported, so there is nothing that calls a callback. Import it first."
        )
    kind = type("PipediagCallback", (WatchingCallback, *bases), {"__module__": __name__})
    return kind(wishes)


def _callback_class(package: str) -> type | None:
    callbacks = getattr(sys.modules.get(package), "callbacks", None)
    found = getattr(callbacks, "Callback", None)
    return found if isinstance(found, type) else None
