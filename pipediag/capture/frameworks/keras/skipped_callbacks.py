"""Callbacks whose batch hooks are not called while steps are tried without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipediag.capture.frameworks.keras.facts import describe_callback
from pipediag.capture.frameworks.keras.listed_callbacks import ListedCallbacks
from pipediag.capture.replay import NotReplayableError
from pipediag.session.edits import SkipCallback


def named(callback_list: Any, skipped: Sequence[SkipCallback]) -> list[Any]:
    """The callbacks of a running `fit` that the changes name.

    Raises:
        NotReplayableError: there is none such, or it can't be left out.
    """
    listed = getattr(callback_list, "callbacks", None)
    if type(listed) is not list:
        raise NotReplayableError("The callbacks of this `fit` are not kept in a list.")
    found: list[Any] = []
    for change in skipped:
        place = (change.callback, change.file, change.line)
        same = [one for one in listed if _place(one) == place]
        if not same:
            raise NotReplayableError(f"This `fit` has no callback {change.callback}.")
        found += same
    if getattr(callback_list, "_async_train", False) and any(map(_works_after_batches, found)):
        raise NotReplayableError(
            "Keras calls the callbacks of this `fit` on another thread, beside its steps."
        )
    return found


class SkippedCallbacks:
    """Takes callbacks out of a `CallbackList`, for one call of it at a time.

    Who was told that a batch begins is told that it ends, and nobody else: an arm may begin and end
    within a step.
    """

    def __init__(self, wanted: Callable[[], Sequence[Any]]) -> None:
        self._wanted = wanted
        self.since_begin: dict[int, list[Any]] = {}
        """By the id of the list: who was not told that its batch began. Read on every step."""

    def begins(self, callback_list: Any) -> _Without | None:
        """A batch begins; None where all callbacks are told so."""
        wanted = self._wanted()
        if not wanted and not self.since_begin:
            return None
        self.since_begin.pop(id(callback_list), None)
        skipped = [one for one in callback_list.callbacks if _is_among(one, wanted)]
        if not skipped:
            return None
        self.since_begin[id(callback_list)] = skipped
        return _Without(callback_list, skipped)

    def ends(self, callback_list: Any) -> _Without | None:
        """The batch ends; None where all callbacks are told so."""
        if not self.since_begin:
            return None
        skipped = self.since_begin.pop(id(callback_list), None)
        return None if skipped is None else _Without(callback_list, skipped)


class _Without(ListedCallbacks):
    """Passes some of the callbacks over."""

    def __init__(self, owner: Any, skipped: Sequence[Any]) -> None:
        super().__init__(owner)
        self._skipped = skipped

    def __iter__(self) -> Iterator[Any]:
        for callback in super().__iter__():
            if not _is_among(callback, self._skipped):
                yield callback


def _is_among(callback: Any, others: Sequence[Any]) -> bool:
    return any(callback is other for other in others)


def _place(callback: Any) -> tuple[str, str | None, int | None]:
    known = describe_callback(callback)
    return known.name, known.file, known.line


def _works_after_batches(callback: Any) -> bool:
    return any(hook.endswith("_end") for hook in describe_callback(callback).batch_hooks)
