"""Keras's own calls that take a while, told to the timeline: `fit`, `evaluate`, `predict`, and what
callbacks do at the ends of epochs and of the training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.capture.callsites import CallSite, call_site, is_users
from pipediag.capture.guard import Guard
from pipediag.capture.python_functions import unwrap
from pipediag.capture.timeline.timeline import Timeline
from pipediag.session.timeline import Span
from pipediag.vocabulary import SpanKind

_METHODS: dict[str, SpanKind] = {
    "fit": "fit",
    "evaluate": "evaluation",
    "predict": "evaluation",
}
_AT_EPOCHS = ("on_train_begin", "on_epoch_begin", "on_epoch_end", "on_train_end")
_BASE = "Callback"


class TimedCalls:
    """Hooks that only look at the clock."""

    def __init__(self, timeline: Timeline, guard: Guard) -> None:
        self._timeline = timeline
        self._guard = guard
        self._timed: set[Callable[..., Any]] = set()
        self._in_callback = False

    def time_methods(self, model_class: type) -> None:
        """Of a class that trains: those that it defines."""
        for method, kind in _METHODS.items():
            if method in vars(model_class):
                self._time_method(model_class, method, kind)

    def time_callbacks(self, callback_list: Any) -> None:
        """Each callback's class is hooked when a training with it begins."""
        known = self._guard.entry("timing callbacks", self._time_each)
        original = vars(callback_list)["on_train_begin"]
        callback_list.on_train_begin = self._guard.before(original, known)

    def _time_method(self, owner: type, method: str, kind: SpanKind) -> None:
        original = vars(owner)[method]
        timeline = self._timeline
        begins = self._guard.entry(
            f"timing {method}", lambda: timeline.begins(kind, method, call_site())
        )
        ended = self._guard.entry(f"timing {method}", timeline.ended)

        def timed(*args: Any, **kwargs: Any) -> Any:
            span = begins()
            try:
                return original(*args, **kwargs)
            finally:
                ended(span)

        setattr(owner, method, self._guard.hook(original, timed))

    def _time_each(self, callback_list: Any, *_: Any, **__: Any) -> None:
        for callback in getattr(callback_list, "callbacks", ()):
            for owner in type(callback).__mro__:
                if owner.__name__ != _BASE:
                    for method in _AT_EPOCHS:
                        self._time_hook(owner, method)

    def _time_hook(self, owner: type, method: str) -> None:
        original = vars(owner).get(method)
        if not callable(original) or original in self._timed:
            return
        begins = self._guard.entry("timing callbacks", self._callback_begins)
        ended = self._guard.entry("timing callbacks", self._callback_ended)

        def timed(callback: Any, *args: Any, **kwargs: Any) -> Any:
            span = begins(callback, original)
            try:
                return original(callback, *args, **kwargs)
            finally:
                ended(span)

        hooked = self._guard.hook(original, timed)
        self._timed.add(hooked)
        setattr(owner, method, hooked)

    def _callback_begins(self, callback: Any, method: Any) -> Span | None:
        """None within another callback, as of a method that calls that of its base."""
        if self._in_callback:
            return None
        span = self._timeline.begins("callback", type(callback).__name__, _defined_at(method))
        self._in_callback = span is not None
        return span

    def _callback_ended(self, span: Span | None) -> None:
        if span is not None:
            self._in_callback = False
            self._timeline.ended(span)


def _defined_at(method: Any) -> CallSite | None:
    """Where a user's method is defined; None for one of Keras's own."""
    code = getattr(unwrap(method), "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return CallSite(code.co_filename, code.co_firstlineno, code.co_name, by_framework=False)
