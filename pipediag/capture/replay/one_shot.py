"""Generators that can be gone through only once."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from pipediag.capture.packages import KERAS, package_of_module
from pipediag.capture.replay.graph import Graph
from pipediag.capture.replay.refusal import said

_DEEPEST = 4
_ITERATOR = "iterator"
_WORKERS = "workers"
_KERAS_WORKERS = "OrderedEnqueuer"
_MODULES = ("builtins", "itertools", "_csv")
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def one_shot_source(dataset: Any) -> str | None:
    """Why the pipeline can't be read a second time, as a sentence, or None where nothing says so.

    Nothing is called and no element is taken: what a callable holds on to tells. A function that
    hands out an iterator from outside hands out the same one every time.
    """
    for _, call in Graph(dataset).calls():
        source = next(_held_by(call.generator, _DEEPEST), None)
        if source == _WORKERS:
            return "The batches come from workers of their own, which can serve one loop only."
        if source == _ITERATOR:
            return (
                f"The generator of {said(call.operation)} reads from an iterator that can be gone "
                "through only once."
            )
    return None


def _held_by(function: Any, depth: int) -> Iterator[str]:
    """What a callable needs that can't be had a second time."""
    if depth == 0 or isinstance(function, type):
        return
    if isinstance(function, functools.partial):
        held = [function.func, *function.args, *function.keywords.values()]
    else:
        owner = getattr(function, "__self__", None)
        plain = getattr(function, "__func__", function)
        if not inspect.isfunction(plain) and owner is None:
            owner, plain = function, getattr(type(function), "__call__", None)  # noqa: B004
        held = [owner, *_named_by(plain, owner)] if inspect.isfunction(plain) else [owner]
    for value in held:
        if _is_one_shot(value):
            yield _ITERATOR
        elif _is_keras_workers(value):
            yield _WORKERS
        elif isinstance(value, functools.partial) or inspect.isfunction(value):
            yield from _held_by(value, depth - 1)


def _named_by(function: Any, owner: Any) -> Iterator[Any]:
    """Values that the function's code names: closed over, global, default, its object's own."""
    names = set(function.__code__.co_names)
    owners = [owner]
    for cell in function.__closure__ or ():
        try:
            owners.append(cell.cell_contents)
        except ValueError:
            continue  # not yet filled
    yield from owners[1:]
    yield from function.__defaults__ or ()
    yield from (v for name, v in function.__globals__.items() if name in names)
    for one in owners:
        yield from (v for name, v in getattr(one, "__dict__", {}).items() if name in names)


def _is_one_shot(value: Any) -> bool:
    # Of other classes, files among them, some can be wound back.
    plain = type(value).__module__ in _MODULES
    return plain and isinstance(value, Iterator) and not isinstance(value, _ENDLESS)


def _is_keras_workers(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == _KERAS_WORKERS and package_of_module(kind.__module__) in KERAS
