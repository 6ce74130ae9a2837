"""Whether a loop over a data set only reads it: no model is called for what it hands out."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import FrameType

from pipediag.capture.callsites import is_users
from pipediag.capture.loops.source import around, parsed

_WHOLE = frozenset({"list", "tuple", "set", "sorted", "sum", "len", "max", "min", "any", "all"})
"""Functions of Python's that go through all that they are given."""
_CALLS_NO_MODEL = _WHOLE | frozenset(
    {"numpy", "append", "extend", "add", "update", "items", "int", "float", "str", "print", "range",
     "zip", "enumerate", "shape", "tolist", "item", "decode"}
)  # fmt: skip
"""What may be called for each batch all the same, by the last part of its name."""

_Loop = ast.For | ast.AsyncFor | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def only_reads(frames: Iterable[FrameType]) -> bool:
    """Whether the innermost line of the user's goes through a data set and does little with it.

    False where its source does not tell.
    """
    frame = next((one for one in frames if is_users(one.f_code.co_filename)), None)
    tree = parsed(frame.f_code.co_filename) if frame is not None else None
    if frame is None or tree is None:
        return False
    found = list(around(tree, frame.f_lineno))
    loops = [one for one in found if isinstance(one, _Loop) and _goes_on_at(one, frame.f_lineno)]
    if loops:
        return all(_name(call) in _CALLS_NO_MODEL for call in _called_for_each(loops[-1]))
    statement = next((one for one in reversed(found) if isinstance(one, ast.stmt)), None)
    if statement is None or isinstance(statement, _Loop):
        return False
    return any(_name(call) in _WHOLE for call in _calls_in([statement]))


def _goes_on_at(loop: _Loop, line: int) -> bool:
    """Whether what it goes through is written on that line."""
    through = [loop.iter] if isinstance(loop, ast.For | ast.AsyncFor) else [
        one.iter for one in loop.generators
    ]  # fmt: skip
    return any(one.lineno <= line <= (one.end_lineno or line) for one in through)


def _called_for_each(loop: _Loop) -> list[ast.Call]:
    match loop:
        case ast.For() | ast.AsyncFor():
            return _calls_in(loop.body)
        case ast.DictComp():
            return _calls_in([loop.key, loop.value])
        case _:
            return _calls_in([loop.elt])


def _calls_in(written: Iterable[ast.AST]) -> list[ast.Call]:
    return [node for one in written for node in ast.walk(one) if isinstance(node, ast.Call)]


def _name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None
