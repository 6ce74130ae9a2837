"""A Keras list of callbacks while a call passes through it.

The callbacks are clocked, distinguished in the timeline, or some of them left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Any

from pipediag.capture.callsites import defined_at, unwrap
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import CALLBACK_CLOCK
from pipediag.capture.timeline import Timeline
from pipediag.capture.trying.model_variants import is_among
from pipediag.capture.trying.trials import Trials
from pipediag.session.timeline import Span

Walk = Callable[[Iterable[Any]], Generator[Any, None, None]]
"""Yields callbacks one after the other."""


class ListedCallbacks(list[Any]):
    """Takes the place of the owner's list, and acts where that is walked over.

    Neither a callback nor its class is touched: they are the script's, which may send them to
    other processes.
    """

    def __init__(self, owner: Any, walk: Walk) -> None:
        self._own: list[Any] = owner.callbacks
        super().__init__(self._own)
        self._owner = owner
        self._walk = walk
        self._walking: Generator[Any, None, None] | None = None
        owner.callbacks = self

    def __iter__(self) -> Generator[Any, None, None]:
        self._walking = self._walk(super().__iter__())
        return self._walking

    def __reduce_ex__(self, _: Any) -> Any:
        """Copy the callbacks alone."""
        return list, (self[:],)

    def put_back(self) -> None:
        """Give the owner its own list again, with what has been added to it meanwhile."""
        if self._walking is not None:
            self._walking.close()  # a callback may have failed
        if self._owner.callbacks is self:
            self._own[:] = self[:]
            self._owner.callbacks = self._own


_AT_EPOCHS = ("on_train_begin", "on_epoch_begin", "on_epoch_end", "on_train_end")
_TIMING = "timing callbacks"
_AT_BATCHES = "clocking callbacks and leaving them out"


class CallbackHooks:
    """Hooks on the methods of a `CallbackList` that call each callback in turn.

    Callbacks are timed at the ends of epochs. At batches they are clocked while stacks are sampled,
    and those left out that a step is tried without. A trial may begin and end within a step: a
    callback hears that a batch ends if it heard that it begins, and only then.
    """

    def __init__(self, guard: Guard, held: Trials, timeline: Timeline) -> None:
        self._guard = guard
        self._held = held
        self._timeline = timeline
        self._begins = guard.entry(_TIMING, self._begin)
        self._ended = guard.entry(_TIMING, timeline.ended)
        self._skipped: dict[int, list[Any]] = {}
        """The callbacks that did not hear that a batch began, by the id of the list."""

    def install(self, owner: type) -> None:
        for method in _AT_EPOCHS:
            self._pass_through(owner, method, _TIMING, partial(self._timed, method))
        self._pass_through(owner, "on_train_batch_begin", _AT_BATCHES, self._at_begin)
        self._pass_through(owner, "on_train_batch_end", _AT_BATCHES, self._at_end)

    def _pass_through(
        self, owner: type, method: str, what: str, walk_of: Callable[[Any], Walk | None]
    ) -> None:
        """Have the callbacks walked over another way for the time of a call, where there is one."""

        def enter(callback_list: Any) -> ListedCallbacks | None:
            # Another class than that of a list can't be replaced.
            plain = type(getattr(callback_list, "callbacks", None)) is list
            walk = walk_of(callback_list) if plain else None
            return ListedCallbacks(callback_list, walk) if walk is not None else None

        original = getattr(owner, method)
        enters = self._guard.entry(what, enter)
        leaves = self._guard.entry(what, ListedCallbacks.put_back, ListedCallbacks.put_back)

        def passed(callback_list: Any, *args: Any, **kwargs: Any) -> Any:
            listed = enters(callback_list)
            if listed is None:
                return original(callback_list, *args, **kwargs)
            try:
                return original(callback_list, *args, **kwargs)
            finally:
                leaves(listed)

        setattr(owner, method, self._guard.hook(original, passed))

    def _timed(self, method: str, _: Any) -> Walk | None:
        def walk(callbacks: Iterable[Any]) -> Generator[Any, None, None]:
            for callback in callbacks:
                span = self._begins(callback, method)
                try:
                    yield callback
                finally:
                    self._ended(span)

        # Within another callback all of this is that one's time.
        return None if self._timeline.in_a_callback else walk

    def _begin(self, callback: Any, method: str) -> Span | None:
        hook = getattr(callback, method, None)
        plain = unwrap(hook)
        if getattr(plain, "__qualname__", "") == f"Callback.{method}" and not defined_at(hook):
            return None  # that of Keras's base class, which does nothing
        return self._timeline.begins("callback", type(callback).__name__, defined_at(hook))

    def _at_begin(self, callback_list: Any) -> Walk | None:
        if self._held.loop is None and not self._skipped:
            return _clocked if CALLBACK_CLOCK.running else None
        wanted = self._held.skipped
        self._skipped.pop(id(callback_list), None)
        skipped = [one for one in callback_list.callbacks if wanted and is_among(one, wanted)]
        if skipped:
            self._skipped[id(callback_list)] = skipped
        return _without(skipped)

    def _at_end(self, callback_list: Any) -> Walk | None:
        if self._held.loop is None and not self._skipped:
            return _clocked if CALLBACK_CLOCK.running else None
        return _without(self._skipped.pop(id(callback_list), []))


def _without(skipped: Sequence[Any]) -> Walk | None:
    return (lambda each: (one for one in each if not is_among(one, skipped))) if skipped else None


def _clocked(callbacks: Iterable[Any]) -> Generator[Any, None, None]:
    """Take the time of each callback from its turn to the next one's."""
    for callback in callbacks:
        began_ns = time.monotonic_ns()
        yield callback
        CALLBACK_CLOCK.add(type(callback).__name__, time.monotonic_ns() - began_ns)
