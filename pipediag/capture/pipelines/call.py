"""One tf.data call as it was made, kept on the dataset that it returned, so as to make it again."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipediag.capture.callsites import CallSite
from pipediag.session.recorded_operations import RecordedOperation

MARK = "_pipediag_op"
"""Where a dataset carries the id of the operation that made it."""
_CALL = "_pipediag_call"

DATA_SOURCES = frozenset({"from_tensors", "from_tensor_slices", "from_list", "from_generator"})
"""Calls whose arguments may be the user's whole data, or state that a second call would upset."""


@dataclass(frozen=True, eq=False)
class Call:
    """What to call with what, or nothing where a source is only ever used as it is."""

    operation: RecordedOperation
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    inside: tuple[RecordedOperation, ...] = ()
    """Operations that its function made, in their order."""

    @property
    def repeatable(self) -> bool:
        """Whether the call can be made again; a data source kept no arguments for that."""
        return self.operation.kind not in DATA_SOURCES

    @property
    def generator(self) -> Any:
        """The callable given to `from_generator`, or None."""
        return self.args[0] if self.operation.kind == "from_generator" and self.args else None


def remember(
    dataset: Any,
    operation: RecordedOperation,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inside: tuple[RecordedOperation, ...],
) -> None:
    """Keep a call on the dataset that it returned; of a data source only the generator."""
    if getattr(dataset, "__dict__", {}).get(MARK) != operation.id:
        return  # an identity: another call had made what this one returned
    if operation.kind in DATA_SOURCES:
        given = args or (kwargs.get("generator"),)
        args, kwargs = (given[:1] if operation.kind == "from_generator" else ()), {}
    elif isinstance(function, type):
        args, kwargs = _with_names_as_read(dataset, args, kwargs)
    keep(dataset, Call(operation, function, args, kwargs, inside))


def _with_names_as_read(
    dataset: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A reader's arguments with the dataset of file names that it made of a list.

    The list is the script's own: it may be long, and may change.
    """
    names = getattr(dataset, "_filenames", None)
    if not hasattr(names, "element_spec"):
        return args, kwargs
    if args:
        return (names, *args[1:]), kwargs
    return args, {**kwargs, "filenames": names}


def keep(dataset: Any, call: Call) -> None:
    """Attach a call; not by setattr, for a dataset tracks its attributes as checkpointable."""
    dataset.__dict__[_CALL] = call


def forget(dataset: Any) -> None:
    """Take away what recording has left on a dataset: another recording would misread it."""
    for key in (MARK, _CALL):
        dataset.__dict__.pop(key, None)


def call_of(dataset: Any) -> Call | None:
    """The call that returned this dataset, or None where it was not a recorded one."""
    call: Call | None = dataset.__dict__.get(_CALL)
    return call


class InnerCalls(Protocol):
    """Stands in for recording while an outer call is made again and its function is traced."""

    def call(
        self,
        kind: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: Callable[[], tuple[str | None, int | None]],
    ) -> Any:
        """Make a tf.data call of a user's function; `place` finds its file and line."""
        ...


@dataclass(frozen=True)
class MadeAgain:
    """A call of the user's that we make for them, as it was made before we came."""

    site: CallSite | None
    """As far as that can still be told."""


making_again: ContextVar[MadeAgain | None] = ContextVar("making_again", default=None)
"""Set while such a call is made, in that thread alone."""

replaying: ContextVar[InnerCalls | None] = ContextVar("replaying", default=None)
"""Set while calls are made again, in that thread alone: nothing is recorded then."""
