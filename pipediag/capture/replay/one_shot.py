"""Generators that can be gone through only once."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from pipediag.capture.replay.graph import Graph
from pipediag.capture.replay.refusal import said

_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def one_shot_source(dataset: Any) -> str | None:
    """Why the pipeline can't be read a second time, as a sentence, or None where nothing says so.

    Nothing is called and no element is taken: what a callable holds on to tells. A function that
    hands out an iterator from outside hands out the same one every time.
    """
    for node in Graph(dataset).operations():
        generator = node.call.generator if node.call else None
        if generator is not None and node.operation is not None and _holds_iterator(generator):
            return (
                f"The generator of {said(node.operation)} reads from an iterator that can be gone "
                "through only once."
            )
    return None


def _holds_iterator(function: Any) -> bool:
    if isinstance(function, functools.partial):
        given = (*function.args, *function.keywords.values())
        return any(map(_is_one_shot, given)) or _holds_iterator(function.func)
    owner = getattr(function, "__self__", None)
    if _is_one_shot(owner):
        return True
    plain = getattr(function, "__func__", function)
    if not inspect.isfunction(plain):
        owner, plain = function, getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted
    if not inspect.isfunction(plain):
        return False
    return any(map(_is_one_shot, _mentioned(plain, owner)))


def _mentioned(function: Any, owner: Any) -> Iterator[Any]:
    """Values that the function's code names: closed over, global, default, its object's own."""
    names = set(function.__code__.co_names)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not yet filled
    yield from function.__defaults__ or ()
    yield from (v for name, v in function.__globals__.items() if name in names)
    yield from (v for name, v in getattr(owner, "__dict__", {}).items() if name in names)


def _is_one_shot(value: Any) -> bool:
    return (
        isinstance(value, Iterator)
        and not isinstance(value, _ENDLESS)
        # A file can be wound back.
        and not hasattr(value, "seek")
    )
