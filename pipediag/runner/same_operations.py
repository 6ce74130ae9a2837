"""Which operation of a second run is which one of the first: their ids may have shifted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pipediag.runner.asking import Ask
from pipediag.session.messages import Answer, Command, Prepare
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recording import Recording

Ids = Mapping[str, str]
"""From the ids of the first run to those of the second."""


class BehavedOtherwiseError(Exception):
    """The second run is not like the first; the message is the end of a sentence."""


def same_operations(first: Recording, second: Recording, loop_id: str) -> Ids:
    """The ids of all operations that the loop reads from, matched by kind and place.

    Raises:
        BehavedOtherwiseError: the loop of that id is another one, or reads from other operations.
    """
    one, other = _loop(first, loop_id), _loop(second, loop_id)
    if _place(one) != _place(other):
        raise BehavedOtherwiseError(
            f"the loop in {_said(other)} came where the one in {_said(one)} had been"
        )
    return _Matching(first, second).from_roots(one.root_op_id, other.root_op_id)


def asked_by_new_ids(ask: Ask, ids: Ids) -> Ask:
    """Asks for arms by the ids of the second run."""

    def translated(command: Command, limit_s: float) -> Answer:
        if isinstance(command, Prepare):
            changes = tuple(_translated(change, ids) for change in command.changes)
            command = replace(command, changes=changes)
        return ask(command, limit_s)

    return translated


def _translated(change: Any, ids: Ids) -> Any:
    """The change with the ids of the operations that it names."""
    names = {field.name for field in fields(change)} & {"op_id", "after"}
    return replace(change, **{name: ids[getattr(change, name)] for name in names})


class _Matching:
    def __init__(self, first: Recording, second: Recording) -> None:
        self._first = _Operations(first)
        self._second = _Operations(second)

    def from_roots(self, one: str | None, other: str | None) -> Ids:
        ids: dict[str, str] = {}
        pending = [(one, other)] if one is not None or other is not None else []
        while pending:
            pair = pending.pop()
            known, found = self._first.by_id.get(str(pair[0])), self._second.by_id.get(str(pair[1]))
            if known is None or found is None or _place(known) != _place(found):
                raise BehavedOtherwiseError("its loop read from another pipeline")
            if known.id in ids:
                continue
            ids[known.id] = found.id
            before, after = self._first.below(known), self._second.below(found)
            if len(before) != len(after):
                raise BehavedOtherwiseError("its loop read from another pipeline")
            pending += zip(before, after, strict=True)
        return ids


class _Operations:
    """Those of one run, and what each of them takes elements from."""

    def __init__(self, recording: Recording) -> None:
        self.by_id = {operation.id: operation for operation in recording.operations}
        self._inside: dict[str, list[str]] = {}
        for operation in recording.operations:
            if operation.inside_function_of is not None:
                self._inside.setdefault(operation.inside_function_of, []).append(operation.id)

    def below(self, operation: RecordedOperation) -> list[str]:
        return [*operation.parent_ids, *self._inside.get(operation.id, [])]


def _loop(recording: Recording, loop_id: str) -> RecordedLoop:
    for loop in recording.loops:
        if loop.id == loop_id:
            return loop
    raise BehavedOtherwiseError("its loop did not come")


def _place(one: RecordedLoop | RecordedOperation) -> tuple[str, str | None, int | None]:
    return one.kind, one.file, one.line


def _said(loop: RecordedLoop) -> str:
    return f"line {loop.line} of {loop.file}"
