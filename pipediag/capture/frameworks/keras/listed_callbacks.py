"""The callbacks of a `CallbackList`, in a list of ours for one call of it."""

from __future__ import annotations

from typing import Any


class ListedCallbacks(list[Any]):
    """Takes the place of the owner's list; who walks over it decides what that comes to.

    Neither a callback nor its class is touched: they are the script's, which may send them to
    other processes.
    """

    def __init__(self, owner: Any) -> None:
        self._own: list[Any] = owner.callbacks
        super().__init__(self._own)
        self._owner = owner
        owner.callbacks = self

    def __reduce_ex__(self, _: Any) -> Any:
        """A copy is one of the callbacks alone."""
        return list, (self[:],)

    def put_back(self) -> None:
        """The list is the owner's own again, with what has been added to it meanwhile."""
        if self._owner.callbacks is self:
            self._own[:] = self[:]
            self._owner.callbacks = self._own
