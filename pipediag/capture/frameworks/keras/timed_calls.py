"""Keras's own calls that take a while, told to the timeline: `fit`, `evaluate`, `predict`, and what
callbacks do at the ends of epochs and of the training."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pipediag.capture.callsites import call_site
from pipediag.capture.frameworks.keras.callbacks import (
    CallbacksInTurn,
    defined_at,
    does_something,
)
from pipediag.capture.guard import Guard, nothing
from pipediag.capture.timeline import Timeline
from pipediag.session.timeline import Span
from pipediag.vocabulary import SpanKind

_METHODS: dict[str, SpanKind] = {
    "fit": "fit",
    "evaluate": "evaluation",
    "predict": "evaluation",
}
_AT_EPOCHS = ("on_train_begin", "on_epoch_begin", "on_epoch_end", "on_train_end")


class TimedCalls:
    """Hooks that look at the clock, and tell of calls that are over."""

    def __init__(
        self,
        timeline: Timeline,
        guard: Guard,
        evaluated: Callable[[Span], None] | None = None,
        fit_over: Callable[[], None] = nothing,
        predicted: Callable[..., None] | None = None,
    ) -> None:
        """`evaluated` hears of each evaluation that has ended, by now; `fit_over` of each `fit`
        that is over, also by what it raised; `predicted` of each call of `predict`, if given."""
        self._timeline = timeline
        self._evaluated = evaluated
        self._guard = guard
        self._predicted = predicted and guard.entry("timing `predict_on_batch`", predicted)
        self._fit_over = guard.entry("leaving a `fit` that is over", fit_over, vital=True)
        self._callback_begins = guard.entry("timing callbacks", self._begin_callback)
        self._callback_ended = guard.entry("timing callbacks", timeline.ended)

    def time_methods(self, model_class: type) -> None:
        """Of a class that trains: those that it defines."""
        for method, kind in _METHODS.items():
            if method in vars(model_class):
                self._time_method(model_class, method, kind)

    def time_callbacks(self, callback_list: type) -> None:
        """Each callback from its turn in the list to the next one's."""
        for method in _AT_EPOCHS:
            self._time_turns(callback_list, method)

    def _time_method(self, owner: type, method: str, kind: SpanKind) -> None:
        original = vars(owner)[method]
        timeline = self._timeline
        begins = self._guard.entry(
            f"timing {method}", lambda: timeline.begins(kind, method, call_site())
        )
        ended = self._guard.entry(f"timing {method}", self._call_ended)
        left = self._fit_over if kind == "fit" else nothing
        predicted = self._predicted if method == "predict" else None

        def timed(*args: Any, **kwargs: Any) -> Any:
            span = begins()
            try:
                return original(*args, **kwargs)
            finally:
                left()
                ended(span)

        def compared(model: Any, *args: Any, **kwargs: Any) -> Any:
            start_ns = time.perf_counter_ns()
            result = timed(model, *args, **kwargs)
            assert predicted is not None
            predicted(time.perf_counter_ns() - start_ns, result, model, args, kwargs)
            return result

        setattr(owner, method, self._guard.hook(original, compared if predicted else timed))

    def _call_ended(self, span: Span | None) -> None:
        self._timeline.ended(span)
        if span is not None and span.kind == "evaluation" and self._evaluated is not None:
            self._evaluated(span)

    def _time_turns(self, owner: type, method: str) -> None:
        original: Callable[..., Any] = getattr(owner, method)
        begins = self._guard.entry(
            "timing callbacks", lambda callback_list: self._watch(callback_list, method)
        )
        ended = self._guard.entry(
            "timing callbacks", CallbacksInTurn.over, CallbacksInTurn.put_back
        )

        def timed(callback_list: Any, *args: Any, **kwargs: Any) -> Any:
            in_turn = begins(callback_list)
            if in_turn is None:
                return original(callback_list, *args, **kwargs)
            try:
                return original(callback_list, *args, **kwargs)
            finally:
                ended(in_turn)

        setattr(owner, method, self._guard.hook(original, timed))

    def _watch(self, callback_list: Any, method: str) -> CallbacksInTurn | None:
        """None within another callback, whose time all of this is."""
        if type(callback_list.callbacks) is not list or self._timeline.in_a_callback:
            return None
        return CallbacksInTurn(callback_list, method, self._callback_begins, self._callback_ended)

    def _begin_callback(self, callback: Any, method: str) -> Span | None:
        hook = getattr(callback, method, None)
        if not does_something(hook):
            return None
        return self._timeline.begins("callback", type(callback).__name__, defined_at(hook))
