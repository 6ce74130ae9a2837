"""A Keras callback that measures the `fit` it is given to."""

from __future__ import annotations

import sys
import threading
import weakref
from os import PathLike
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from pipediag.errors import PipediagError
from pipediag.library.alongside import Wishes
from pipediag.library.cells import when_cell_ends
from pipediag.library.result import Result
from pipediag.library.watching import Watch
from pipediag.session.messages import Ended

_PACKAGES = ("keras", "tf_keras")
_CUT_OFF = Ended("raised", 1, "`fit` did not come to its end.")


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
        self._watch = watch = Watch(self._wishes, "callback")
        fit = _Fit(sys._getframe(1))

        def end_if_over() -> None:
            if not fit.runs():
                watch.end(_CUT_OFF)

        watch.begin(end_if_over)
        watch.fit_goes_on()
        if watch.is_open:
            # A notebook keeps the frames of the last error, and what is theirs.
            when_cell_ends(end_if_over)
        if fit.callbacks is not None:
            # Keras tells a callback nothing of a `fit` that raises; its list goes with its frame.
            weakref.finalize(fit.callbacks, watch.end, _CUT_OFF)
        fit.callbacks = None

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras's
        """The last step is over."""
        if self._watch is not None:
            self._watch.end(Ended("finished", 0))


class _Fit:
    """The call that a callback's frame is in."""

    def __init__(self, frame: FrameType | None) -> None:
        self._thread = threading.get_ident()
        self._code: CodeType | None = None
        self.callbacks: Any = None
        """Keras's list of callbacks, where it is on the stack."""
        while frame is not None:
            if frame.f_code.co_name == "on_train_begin" and self.callbacks is None:
                owner = frame.f_locals.get("self")
                self.callbacks = owner if hasattr(owner, "callbacks") else None
            if frame.f_code.co_name == "fit":
                self._code = frame.f_code
                return
            frame = frame.f_back

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
    budget: float = 0.0,
    steps: int | None = None,
    warmup: int | None = None,
    profile_steps: int | None = None,
    source: bool = True,
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
    wishes = Wishes(where, budget, steps, warmup, profile_steps, source)
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
