"""The source of the script around a loop, as a syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
import linecache
import operator
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import dropwhile
from types import FrameType
from typing import Any

from pipediag.capture.callsites import is_users, locals_of
from pipediag.capture.pipelines.functions import UNKNOWN, value_of


@lru_cache(maxsize=64)
def parsed(file: str) -> ast.Module | None:
    """Return the syntax tree of a file; None where there is no source, or none of Python's."""
    source = "".join(linecache.getlines(file))
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def around(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """Iterate over the nodes around a line, the outermost first."""
    within: ast.AST | None = tree
    while within is not None:
        following = None
        for child in ast.iter_child_nodes(within):
            if line in _lines_of(child):
                following = child
        if following is not None:
            yield following
        within = following


def _lines_of(node: ast.AST) -> range:
    return range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", None) or -1) + 1)


_WHOLE = frozenset({"list", "tuple", "set", "sorted", "sum", "len", "max", "min", "any", "all"})
"""Functions of Python's that go through all that they are given."""
_CALLS_NO_MODEL = _WHOLE | frozenset(
    {"numpy", "append", "extend", "add", "update", "items", "int", "float", "str", "print", "range",
     "zip", "enumerate", "shape", "tolist", "item", "decode"}
)  # fmt: skip
"""Functions that run no model, by the last part of their names."""

_Iteration = ast.For | ast.AsyncFor | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def only_reads(frames: Iterable[FrameType]) -> bool:
    """Return True if the user's innermost line is known to only go through its data."""
    frame = next((one for one in frames if is_users(one.f_code.co_filename)), None)
    tree = parsed(frame.f_code.co_filename) if frame is not None else None
    if frame is None or tree is None:
        return False
    nodes = [one for one in around(tree, frame.f_lineno) if isinstance(one, ast.stmt | _Iteration)]
    if not nodes:
        return False
    if isinstance(nodes[-1], _Iteration):
        return all(_name(call) in _CALLS_NO_MODEL for call in _calls_in(_repeated(nodes[-1])))
    return any(_name(call) in _WHOLE for call in _calls_in([nodes[-1]]))


def _repeated(loop: _Iteration) -> list[ast.AST]:
    if isinstance(loop, ast.For | ast.AsyncFor):
        return [*loop.body]
    return [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]


def _calls_in(written: Iterable[ast.AST]) -> list[ast.Call]:
    return [node for one in written for node in ast.walk(one) if isinstance(node, ast.Call)]


def _name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


_AS_LONG = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "tqdm"})
"""Functions that give as many elements as they are given."""
_SIZED = (list, tuple, dict, set, frozenset, range, str, bytes)
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def rounds_around(frames: Iterable[FrameType]) -> int | None:
    """Return the rounds of all loops around the user's innermost line, up to the first frame.

    The loop whose header that line is counts as none of them. None where the source does not tell.
    """
    rounds = 1
    for frame in dropwhile(lambda one: not is_users(one.f_code.co_filename), frames):
        for loop in _loops_around(frame):
            size = None if loop is None else _size_of(loop, frame)
            if size is None:
                return None
            rounds *= size
    return rounds or None


def _loops_around(frame: FrameType) -> list[ast.expr | None]:
    """Return what each loop around the frame's line goes through; None for other repetitions."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    tree = parsed(file)
    if tree is None:
        return [None] if is_users(file) else []
    loops: list[ast.expr | None] = []
    for node in around(tree, line):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                loops = []
            case ast.For() if _in_body(node, line):
                loops.append(node.iter)
            case ast.AsyncFor() | ast.While() if _in_body(node, line):
                loops.append(None)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                loops.append(None)
    return loops


def _in_body(loop: ast.For | ast.AsyncFor | ast.While, line: int) -> bool:
    return loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or 0)


def _size_of(iterated: ast.expr, frame: FrameType) -> int | None:
    """Return the rounds of a loop over that; None where it is unknown."""
    try:
        value = _value(iterated, {**frame.f_globals, **locals_of(frame)})
        return len(value) if type(value) in _SIZED else None
    except (ArithmeticError, TypeError, ValueError):
        return None  # a name has another value by now, as a step of 0


def _value(written: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of an expression, as far as it can be read without running anything."""
    value: Any = UNKNOWN
    match written:
        case ast.Constant():
            value = written.value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            if not any(isinstance(one, ast.Starred) for one in parts):
                value = tuple(parts)
        case ast.Subscript(value=of, slice=ast.Constant(value=key)):
            settings = _value(of, names)
            value = settings.get(key, UNKNOWN) if type(settings) is dict else UNKNOWN
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            numbers = [_value(left, names), _value(right, names)]
            if all(type(one) is int for one in numbers):
                value = _OPERATORS[type(sign)](*numbers)
        case ast.Call(args=[_, *_]):
            value = _called(written, names)
        case _:
            value = value_of(written, names)
    return value


def _called(call: ast.Call, names: dict[str, Any]) -> Any:
    name = _name(call) or ""
    if isinstance(call.func, ast.Name) and name != "tqdm" and name in names:
        return UNKNOWN  # the script's own, under a name of Python's
    first, *others = [_value(one, names) for one in call.args]
    if name == "range" and all(type(one) is int for one in (first, *others)):
        return range(first, *others)
    if name == "len" and type(first) in _SIZED:
        return len(first)
    return first if name in _AS_LONG else UNKNOWN
