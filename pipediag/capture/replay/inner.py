"""Calls within another operation's function, which is traced again with it: `flat_map`'s maps."""

from __future__ import annotations

import inspect
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from pipediag.capture.replay.arguments import set_parameters
from pipediag.capture.replay.inserting import inserted
from pipediag.session.edits import Insert, Remove, SetParameters, unknown_change
from pipediag.session.recorded_operations import RecordedOperation

Place = tuple[str | None, int | None]
InnerChange = SetParameters | Insert | Remove


class Inner:
    """Recognises the calls of a function as it is traced again, and changes some of them."""

    def __init__(self, operations: Sequence[RecordedOperation]) -> None:
        self.changes: list[InnerChange] = []
        self.hoisted: dict[str, inspect.BoundArguments] = {}
        """Arguments of the calls that were left out, by operation."""
        self.functions: dict[str, Callable[..., Any]] = {}
        self._places: dict[tuple[str, Place], deque[RecordedOperation]] = defaultdict(deque)
        self._kinds: dict[str, deque[RecordedOperation]] = defaultdict(deque)
        for operation in operations:
            self._places[operation.kind, (operation.file, operation.line)].append(operation)
            self._kinds[operation.kind].append(operation)

    def call(
        self,
        kind: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: Callable[[], Place],
    ) -> Any:
        """Make the call as it was recorded, with the changes that name it.

        Raises:
            NotReplayableError: a change that can't be made here.
        """
        if not self._kinds[kind]:
            return function(*args, **kwargs)
        operation = self._next(kind, place())
        given = inspect.signature(function).bind(*args, **kwargs)
        if "name" in inspect.signature(function).parameters:
            given.arguments["name"] = operation.name
        mine = [c for c in self.changes if _target(c) == operation.id]
        for change in mine:
            if isinstance(change, SetParameters):
                set_parameters(given, change.parameters, operation)
        if any(isinstance(change, Remove) for change in mine):
            self.hoisted[operation.id] = given
            self.functions[operation.id] = function
            made = args[0]
        else:
            made = function(*given.args, **given.kwargs)
        for change in mine:
            if isinstance(change, Insert):
                made = inserted(made, change.kind, change.parameters)
        return made

    def _next(self, kind: str, place: Place) -> RecordedOperation:
        """Calls at one place come in the order of their recording, in every tracing anew."""
        # A class given as the function has no line of its own: there its kind must do.
        waiting = self._places.get((kind, place)) or self._kinds[kind]
        waiting.rotate(-1)
        return waiting[-1]


def _target(change: InnerChange) -> str:
    match change:
        case Insert():
            return change.after
        case SetParameters() | Remove():
            return change.op_id
        case unknown:
            return unknown_change(unknown)
