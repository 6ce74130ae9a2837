"""A Keras list of callbacks while a call passes through it.

The callbacks are clocked, told apart in the timeline, or some of them left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipediag.capture.callsites import CallSite, is_users, unwrap
from pipediag.capture.frameworks.keras.facts import describe_callback
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import CALLBACK_CLOCK
from pipediag.capture.replay import NotReplayableError
from pipediag.session.edits import SkipCallback


class ListedCallbacks(list[Any]):
    """Takes the place of the owner's list, and acts where that is walked over.

    Neither a callback nor its class is touched: they are the script's, which may send them to
    other processes.
    """

    def __init__(self, owner: Any) -> None:
        self._own: list[Any] = owner.callbacks
        super().__init__(self._own)
        self._owner = owner
        owner.callbacks = self

    def __reduce_ex__(self, _: Any) -> Any:
        """Copy the callbacks alone."""
        return list, (self[:],)

    def put_back(self) -> None:
        """Give the owner its own list again, with what has been added to it meanwhile."""
        if self._owner.callbacks is self:
            self._own[:] = self[:]
            self._owner.callbacks = self._own


def pass_through(
    owner: type,
    method: str,
    guard: Guard,
    enter: Callable[[Any], ListedCallbacks | None],
    leave: Callable[[Any], None],
) -> None:
    """Hook onto a method of a `CallbackList`: `enter` puts another list in the place of its own,
    and `leave` puts that back."""
    original = getattr(owner, method)

    def passed(callback_list: Any, *args: Any, **kwargs: Any) -> Any:
        listed = enter(callback_list)
        if listed is None:
            return original(callback_list, *args, **kwargs)
        try:
            return original(callback_list, *args, **kwargs)
        finally:
            leave(listed)

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


class SkippedCallbacks:
    """Takes callbacks out of a `CallbackList`, for one call of it at a time.

    A trial may begin and end within a step: a callback hears that a batch ends if it heard that it
    begins, and only then.
    """

    def __init__(self, wanted: Callable[[], Sequence[Any]]) -> None:
        self._wanted = wanted
        self.since_begin: dict[int, list[Any]] = {}
        """The callbacks that did not hear that a batch began, by the id of the list. Read on every
        step."""

    def begins(self, callback_list: Any) -> ListedCallbacks | None:
        """Leave out those that are wanted so as a batch begins; None where all hear of it."""
        wanted = self._wanted()
        if not wanted and not self.since_begin:
            return None
        self.since_begin.pop(id(callback_list), None)
        skipped = [one for one in callback_list.callbacks if _is_among(one, wanted)]
        if not skipped:
            return None
        self.since_begin[id(callback_list)] = skipped
        return _Without(callback_list, skipped)

    def ends(self, callback_list: Any) -> ListedCallbacks | None:
        """Leave out the same as the batch ends; None where all hear of it."""
        skipped = self.since_begin.pop(id(callback_list), None) if self.since_begin else None
        return None if skipped is None else _Without(callback_list, skipped)


class _Without(ListedCallbacks):
    """Passes some of the callbacks over."""

    def __init__(self, owner: Any, skipped: Sequence[Any]) -> None:
        super().__init__(owner)
        self._skipped = skipped

    def __iter__(self) -> Iterator[Any]:
        return (one for one in super().__iter__() if not _is_among(one, self._skipped))


def _is_among(callback: Any, others: Sequence[Any]) -> bool:
    return any(callback is other for other in others)


class _ClockedCallbacks(ListedCallbacks):
    """Takes the time of each callback from its turn to the next one's."""

    def __iter__(self) -> Iterator[Any]:
        for callback in super().__iter__():
            began_ns = time.monotonic_ns()
            yield callback
            CALLBACK_CLOCK.add(type(callback).__name__, time.monotonic_ns() - began_ns)


def clocked(callback_list: Any) -> ListedCallbacks | None:
    """Clock the callbacks; None where the list is of a kind that can't be replaced."""
    plain = type(getattr(callback_list, "callbacks", None)) is list
    return _ClockedCallbacks(callback_list) if plain else None


class CallbacksInTurn(ListedCallbacks):
    """Tells of each callback when its turn comes, and when it is over."""

    def __init__(
        self,
        owner: Any,
        method: str,
        begins: Callable[[Any, str], Any],
        ended: Callable[[Any], None],
    ) -> None:
        super().__init__(owner)
        self._method = method
        self._begins = begins
        self._ended = ended
        self._span: Any = None

    def __iter__(self) -> Iterator[Any]:
        for callback in super().__iter__():
            self._span = self._begins(callback, self._method)
            yield callback
            self._end_turn()

    def over(self) -> None:
        """End the last turn, also where a callback has failed."""
        self._end_turn()
        self.put_back()

    def _end_turn(self) -> None:
        span, self._span = self._span, None
        if span is not None:
            self._ended(span)


def defined_at(hook: Any) -> CallSite | None:
    """Return where a user's function is defined; None for one of Keras's own."""
    code = getattr(unwrap(hook), "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return CallSite(code.co_filename, code.co_firstlineno, code.co_name, by_framework=False)


def does_something(hook: Any) -> bool:
    """Return False for the method of Keras's base class, which does nothing."""
    plain = unwrap(hook)
    name = getattr(plain, "__qualname__", "")
    return name != f"Callback.{getattr(plain, '__name__', '')}" or defined_at(hook) is not None
