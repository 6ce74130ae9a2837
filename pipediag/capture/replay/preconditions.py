"""Reasons not to try edits: they would disturb the script, or measure other data than it reads."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from pipediag import tensorflow_names
from pipediag.capture.callsites import is_keras_class
from pipediag.capture.pipelines.functions import closure_of
from pipediag.capture.replay.graph import Graph, Node
from pipediag.capture.replay.refusal import NotReplayableError, at_start, said
from pipediag.session.recording import RecordedOperation
from pipediag.tensorflow_names import DRAWING_KINDS


def draws_random(operation: RecordedOperation) -> bool:
    """Return True if it draws random numbers, by its kind or in its function."""
    names = operation.function.graph_ops if operation.function else {}
    return operation.kind in DRAWING_KINDS or tensorflow_names.draws_random(names)


def _reorders(operation: RecordedOperation) -> bool:
    """Return True if two passes may see its elements in another order."""
    parameters = operation.parameters
    if operation.kind == "shuffle":
        return parameters.get("reshuffle_each_iteration") is not False
    return operation.kind == "list_files" or parameters.get("deterministic") is False


def is_random(node: Node) -> bool:
    """Return True if two passes over this node differ though they agree up to here."""
    return any(draws_random(operation) or _reorders(operation) for operation in node.operations)


_DEEPEST = 4
_MODULES = ("builtins", "itertools", "_csv")
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def refuse_one_shot_sources(graph: Graph) -> None:
    """Refuse a generator that visibly reads from an iterator of the script's.

    Nothing is called and no element is taken: what a callable refers to tells. A function that
    hands out an iterator from outside hands out the same one every time.
    """
    for _, call in graph.calls():
        for value in _referred_to(call.generator, _DEEPEST):
            if _is_one_shot(value):
                raise NotReplayableError(
                    f"The generator of {said(call.operation)} reads from an iterator that can be "
                    "gone through only once."
                )
            if is_keras_class(type(value), ("OrderedEnqueuer",)):
                raise NotReplayableError(
                    "The batches come from workers of their own, which can serve one loop only."
                )


def _referred_to(function: Any, depth: int) -> Iterator[Any]:
    """Yield what a callable and the functions that it refers to refer to."""
    if depth == 0 or isinstance(function, type):
        return
    if isinstance(function, functools.partial):
        values = [function.func, *function.args, *function.keywords.values()]
    else:
        owner = getattr(function, "__self__", None)
        plain = getattr(function, "__func__", function)
        if not inspect.isfunction(plain) and owner is None:
            owner, plain = function, getattr(type(function), "__call__", None)  # noqa: B004
        values = [owner, *_named_by(plain, owner)] if inspect.isfunction(plain) else [owner]
    for value in values:
        yield value
        if isinstance(value, functools.partial) or inspect.isfunction(value):
            yield from _referred_to(value, depth - 1)


def _named_by(function: Any, owner: Any) -> Iterator[Any]:
    """Yield values that the function's code names: closed over, global, default, its object's."""
    names = set(function.__code__.co_names)
    closed_over = list(closure_of(function).values())
    yield from closed_over
    yield from function.__defaults__ or ()
    yield from (v for name, v in function.__globals__.items() if name in names)
    for one in (owner, *closed_over):
        yield from (v for name, v in getattr(one, "__dict__", {}).items() if name in names)


def _is_one_shot(value: Any) -> bool:
    # Of other classes, files among them, some can be wound back.
    plain = type(value).__module__ in _MODULES
    return plain and isinstance(value, Iterator) and not isinstance(value, _ENDLESS)


def refuse_side_effects(graph: Graph) -> None:
    """Refuse functions that visibly change what lies outside of them.

    An edit calls the pipeline's functions more often than the script does.
    """
    for _, call in graph.calls():
        for operation in (call.operation, *call.inside):
            effect = operation.function.side_effect if operation.function else None
            if effect is not None:
                raise NotReplayableError(
                    f"{at_start(said(operation))} calls Python with side effects: {effect}. "
                    "Trying an edit would call it more often than the script does."
                )


def refuse_files_of_its_own(graph: Graph) -> None:
    """Refuse a snapshot, and a cache in a file within a function, which would share their files.

    Of caches on the pipeline itself there are others in their places.
    """
    for _, call in graph.calls():
        kept = [one for one in (call.operation, *call.inside) if one.kind == "snapshot"]
        kept += [
            one for one in call.inside if one.kind == "cache" and one.parameters.get("filename")
        ]
        for operation in kept:
            raise NotReplayableError(
                f"{at_start(said(operation))} keeps elements in files, which a trial would share "
                "with the script."
            )
