"""The arguments of a recorded call: the datasets among them, and the same with others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from pipediag.capture.pipelines.call import Call
from pipediag.capture.replay.refusal import NotReplayableError, at_start, said
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.vocabulary import Scalar


def datasets_read_by(call: Call) -> list[Any]:
    """The datasets among the arguments of a call, each once, in their order."""
    found: dict[int, Any] = {}
    for dataset in _datasets_in((call.args, call.kwargs)):
        found.setdefault(id(dataset), dataset)
    return list(found.values())


def with_datasets(call: Call, inputs: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with other datasets in the places of those that the call read."""
    new = {id(old): given for old, given in zip(datasets_read_by(call), inputs, strict=True)}
    return _with(call.args, new), _with(call.kwargs, new)


def given_arguments(
    call: Call, inputs: list[Any], parameters: dict[str, Scalar]
) -> inspect.BoundArguments:
    """The arguments by name, with other datasets and changed parameters.

    Raises:
        NotReplayableError: a parameter that the operation does not have, or a source of data.
    """
    if not call.repeatable:
        raise NotReplayableError(
            f"{at_start(said(call.operation))} hands out the script's own data, so it can't be "
            "called again with other parameters."
        )
    signature = inspect.signature(call.function)
    args, kwargs = with_datasets(call, inputs)
    given = signature.bind(*args, **kwargs)
    set_parameters(given, parameters, call.operation)
    return given


def set_parameters(
    given: inspect.BoundArguments, parameters: dict[str, Scalar], operation: RecordedOperation
) -> None:
    """Set arguments by their names.

    Raises:
        NotReplayableError: a parameter that the operation does not have.
    """
    for name, value in parameters.items():
        if name not in given.signature.parameters:
            raise NotReplayableError(f"{at_start(said(operation))} has no parameter {name}.")
        given.arguments[name] = value


def _datasets_in(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _datasets_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _datasets_in(item)
    elif _is_dataset(value):
        yield value


def _is_dataset(value: Any) -> bool:
    from tensorflow.python.data.ops import dataset_ops

    return isinstance(value, dataset_ops.DatasetV2)


def _with(value: Any, new: dict[int, Any]) -> Any:
    if id(value) in new:
        return new[id(value)]
    if next(_datasets_in(value), None) is None:
        return value
    if isinstance(value, dict):
        items = {key: _with(item, new) for key, item in value.items()}
        return items if type(value) is dict else type(value)(items)
    changed = [_with(item, new) for item in value]
    return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)
