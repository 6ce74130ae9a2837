"""A Keras list of callbacks while it tells them something, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pipediag.capture.callsites import CallSite, is_users
from pipediag.capture.frameworks.keras.listed_callbacks import ListedCallbacks
from pipediag.capture.python_functions import unwrap


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
        """All of them were told, or one has failed."""
        self._end_turn()
        self.put_back()

    def _end_turn(self) -> None:
        span, self._span = self._span, None
        if span is not None:
            self._ended(span)


def defined_at(hook: Any) -> CallSite | None:
    """Where a user's function is defined; None for one of Keras's own."""
    code = getattr(unwrap(hook), "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return CallSite(code.co_filename, code.co_firstlineno, code.co_name, by_framework=False)


def does_something(hook: Any) -> bool:
    """Whether it is another than Keras's base class has, which does nothing."""
    plain = unwrap(hook)
    name = getattr(plain, "__qualname__", "")
    return name != f"Callback.{getattr(plain, '__name__', '')}" or defined_at(hook) is not None
