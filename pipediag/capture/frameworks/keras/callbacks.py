"""A Keras list of callbacks while a call passes through it.

The callbacks are clocked, distinguished in the timeline, or some of them left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from pipediag.capture.callsites import defined_at, unwrap
from pipediag.capture.frameworks.keras.facts import describe_callback
from pipediag.capture.frameworks.keras.input_layers import is_among
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import CALLBACK_CLOCK
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.capture.trying.trials import Trials
from pipediag.session.edits import SkipCallback

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


def pass_through(
    owner: type,
    method: str,
    guard: Guard,
    what: str,
    enter: Callable[[Any], ListedCallbacks | None],
) -> None:
    """Hook onto a method of a `CallbackList`: `enter` may put another list in the place of its
    own, for the time of the call."""
    original = getattr(owner, method)
    enters = guard.entry(what, enter)
    leaves = guard.entry(what, ListedCallbacks.put_back, ListedCallbacks.put_back)

    def passed(callback_list: Any, *args: Any, **kwargs: Any) -> Any:
        listed = enters(callback_list)
        if listed is None:
            return original(callback_list, *args, **kwargs)
        try:
            return original(callback_list, *args, **kwargs)
        finally:
            leaves(listed)

    setattr(owner, method, guard.hook(original, passed))


def named(callback_list: Any, skipped: Sequence[SkipCallback]) -> list[Any]:
    """Return the callbacks of a running `fit` that the changes name.

    Raises:
        NotReplayableError: there is none such, or it can't be left out.
    """
    listed = getattr(callback_list, "callbacks", None)
    if type(listed) is not list:
        raise NotReplayableError("The callbacks of this `fit` are not kept in a list.")
    described = [(one, describe_callback(one)) for one in listed]
    found = []
    for change in skipped:
        place = (change.callback, change.file, change.line)
        same = [each for each in described if (each[1].name, each[1].file, each[1].line) == place]
        if not same:
            raise NotReplayableError(f"This `fit` has no callback {change.callback}.")
        found += same
    if getattr(callback_list, "_async_train", False) and any(
        hook.endswith("_end") for _, known in found for hook in known.batch_hooks
    ):
        raise NotReplayableError(
            "Keras calls the callbacks of this `fit` on another thread, beside its steps."
        )
    return [callback for callback, _ in found]


class CallbacksAtBatches:
    """Leaves out the callbacks that a step is tried without; clocks them while stacks are sampled.

    A trial may begin and end within a step: a callback hears that a batch ends if it heard that it
    begins, and only then.
    """

    def __init__(self, held: Trials) -> None:
        self._held = held
        self._skipped: dict[int, list[Any]] = {}
        """The callbacks that did not hear that a batch began, by the id of the list."""

    def begin(self, callback_list: Any) -> ListedCallbacks | None:
        if self._held.loop is None and not self._skipped:
            return _clocked(callback_list)
        wanted = self._held.skipped
        self._skipped.pop(id(callback_list), None)
        if not wanted:
            return None
        skipped = [one for one in callback_list.callbacks if is_among(one, wanted)]
        if skipped:
            self._skipped[id(callback_list)] = skipped
        return _without(callback_list, skipped)

    def end(self, callback_list: Any) -> ListedCallbacks | None:
        if self._held.loop is None and not self._skipped:
            return _clocked(callback_list)
        return _without(callback_list, self._skipped.pop(id(callback_list), []))


def _without(callback_list: Any, skipped: Sequence[Any]) -> ListedCallbacks | None:
    def walk(callbacks: Iterable[Any]) -> Generator[Any, None, None]:
        yield from (one for one in callbacks if not is_among(one, skipped))

    return ListedCallbacks(callback_list, walk) if skipped else None


def _clocked(callback_list: Any) -> ListedCallbacks | None:
    """Take the time of each callback from its turn to the next one's; None where none is taken, or
    the list is of a kind that can't be replaced."""
    if not CALLBACK_CLOCK.running or type(getattr(callback_list, "callbacks", None)) is not list:
        return None

    def walk(callbacks: Iterable[Any]) -> Generator[Any, None, None]:
        for callback in callbacks:
            began_ns = time.monotonic_ns()
            yield callback
            CALLBACK_CLOCK.add(type(callback).__name__, time.monotonic_ns() - began_ns)

    return ListedCallbacks(callback_list, walk)


def does_something(hook: Any) -> bool:
    """Return False for the method of Keras's base class, which does nothing."""
    plain = unwrap(hook)
    name = getattr(plain, "__qualname__", "")
    return name != f"Callback.{getattr(plain, '__name__', '')}" or defined_at(hook) is not None
