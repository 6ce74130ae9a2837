"""Snapshot of the script's training, to be restored after steps that pipediag made with the model:
before the script is stopped, goes on, or saves."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.process import RandomState, free_memory_bytes, let_pass

_MEMORY_SHARE = 0.5
"""Own choice: copies may take half of what is available, as tf.data's own buffers may."""


class NotRestoredError(Exception):
    """Training by trials could not be undone; the text is the end of a sentence."""


class TrainingState:
    """Values of all variables, and the states of the random generators.

    Counters inside random operations with a seed of their own live in native kernels; they go on.
    """

    def __init__(self) -> None:
        self._values = [(variable, variable.numpy()) for variable in _variables()]
        self._random = RandomState()

    def keep_new(self) -> None:
        """Keep variables that have come since, such as those of a model that was built.

        To make them drew numbers, so the generators go on from there.
        """
        new = self.unknown()
        if new:
            self._values += [(variable, variable.numpy()) for variable in new]
            self._random.keep()

    def restore(self) -> None:
        """Put everything back as it was; NotRestoredError if some variables could not be."""
        try:
            self.restore_values()
        finally:
            self._random.restore()

    def unknown(self) -> list[Any]:
        """Return the variables of which no value is kept."""
        known = {id(variable) for variable, _ in self._values}
        return [variable for variable in _variables() if id(variable) not in known]

    def counters(self) -> list[tuple[Any, Any]]:
        """Return the single integers among the variables with their values of now."""
        return [(variable, variable.numpy()) for variable, value in self._values if _counts(value)]

    def restore_values(self) -> None:
        """Put the values of the variables back, and leave the generators as they are.

        One after the other, as a device may have no room for a second copy of a large table.
        """
        lost = [variable for variable, value in self._values if not _assigned(variable, value)]
        if lost:
            raise NotRestoredError(
                f"{len(lost)} of {len(self._values)} variables could not be put back as they were "
                f"before the trials, for want of memory on their device: {lost[0].name}"
            )


def _assigned(variable: Any, value: Any) -> bool:
    """Write the value; return False where that failed."""
    try:
        variable.assign(value)
    except Exception as error:
        let_pass(error)
        return False
    return True


def _counts(value: Any) -> bool:
    # The value of a single string is bytes, which have neither.
    return getattr(value, "ndim", None) == 0 and value.dtype.kind in "iu"


def _let_go_on(counters: list[tuple[Any, Any]]) -> None:
    for variable, value in counters:
        variable.assign(value)


def lacks_memory() -> str | None:
    """Return a sentence if copies of all variables would not fit into memory."""
    needed = sum(
        variable.shape.num_elements() * variable.dtype.size
        for variable in _variables()
        if variable.shape.is_fully_defined()
    )
    free = free_memory_bytes()
    if free is None or needed <= _MEMORY_SHARE * free:
        return None
    return (
        f"a copy of its variables, to put them back afterwards, takes {needed / 2**30:.1f} GiB, "
        f"where {free / 2**30:.1f} GiB are free"
    )


def _variables() -> list[Any]:
    module = sys.modules.get("tensorflow.python.ops.resource_variable_ops")
    if module is None:
        return []
    kind = module.BaseResourceVariable
    return [
        thing
        for thing in gc.get_objects()
        if issubclass(type(thing), kind) and thing._in_graph_mode is False and _has_value(thing)
    ]


def _has_value(variable: Any) -> bool:
    try:
        return bool(variable.is_initialized())
    except Exception:
        return False


class KeptState:
    """The snapshot, kept from pipediag's first own step until the script has its training back."""

    def __init__(self, guard: Guard, note: Callable[[str], None]) -> None:
        self._guard = guard
        self._note = note
        self._before_saving = guard.entry(
            "putting the training back before it is saved", lambda *_, **__: self._show_saved()
        )
        self._after_saving = guard.entry("letting counters go on behind a save", _let_go_on)
        self._state: TrainingState | None = None
        self.lost: str | None = None
        """Reason why the training could not be restored; the script is stopped then."""

    def keep(self) -> str | None:
        """Take the snapshot, if there is none; return why it can't be taken, for a sentence."""
        lack = self.lost
        if lack is None and self._state is None:
            lack = lacks_memory()
            if lack is None:
                self._state = TrainingState()
        return lack

    def give_back(self) -> None:
        """Restore the training for good: the script goes on by itself."""
        state, self._state = self._state, None
        if state is not None:
            self._put_back(state.restore)

    def show(self) -> None:
        """Restore the variables before the script reads or saves them; our steps may follow."""
        if self._state is not None:
            self._put_back(self._state.restore_values)

    def _show_saved(self) -> list[tuple[Any, Any]] | None:
        """Restore the variables, and return the counters that our steps have come to.

        A script may save by them, as every thousand steps: set back, they would come to the same
        save again and again.
        """
        counters = self._state.counters() if self._state is not None else None
        self.show()
        return counters

    def _put_back(self, restore: Callable[[], None]) -> None:
        try:
            restore()
        except NotRestoredError as error:
            if self.lost is None:
                self._note(f"Nothing more was tried, and the script was stopped: {error}.")
            self.lost = str(error)

    def show_before(self, paths: tuple[str, ...], module: Any) -> None:
        """Hook onto functions of a module through which a script reads its variables."""
        for path in paths:
            *owner, name = path.split(".")
            place = functools.reduce(getattr, owner, module)
            if hasattr(place, name):
                around = self._before_saving, self._after_saving
                self._guard.replace(place, name, self._guard.around(getattr(place, name), *around))
