"""What a Python function visibly changes outside of itself, by its source.

Trying an edit calls the functions of a pipeline more often than the script does, and may call them
at once. Only what is plain to see is found: functions that this one calls are not looked into.
"""

from __future__ import annotations

import ast
import inspect
import io
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from textwrap import dedent
from types import MappingProxyType
from typing import Any

_CONTAINERS = (list, dict, set, bytearray, deque)
_CHANGING = frozenset(
    "add append appendleft clear discard extend insert pop popitem remove setdefault update".split()
)
_WRITING = frozenset("write writelines writerow writerows".split())
_FILES = frozenset(
    "makedirs mkdir rename rmtree savez to_csv to_parquet tofile unlink write_bytes "
    "write_text".split()
)
_WRITE_MODES = frozenset("wax+")
_UNKNOWN = object()
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def side_effect(function: Callable[..., Any]) -> str | None:
    """What it changes, as the end of a sentence (`it changes "seen"`); None where nothing shows."""
    plain = inspect.unwrap(getattr(function, "__func__", function))
    try:
        [definition] = ast.parse(dedent(inspect.getsource(plain))).body
    except (OSError, TypeError, SyntaxError, ValueError, IndentationError):
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    outside = _Outside(definition, plain, getattr(function, "__self__", None))
    return next(outside.changes(), None)


class _Outside:
    """The names of a function that others see, too."""

    def __init__(self, definition: ast.FunctionDef, plain: Any, owner: object | None) -> None:
        self._definition = definition
        self._declared = {
            name
            for node in ast.walk(definition)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        self._own = set(_bound_names(definition)) - self._declared
        self._values = dict(getattr(plain, "__globals__", _NOTHING)) | _closure_of(plain)
        if owner is not None:
            me = definition.args.args[0].arg
            self._own.discard(me)
            self._values[me] = owner

    def changes(self) -> Iterator[str]:
        for node in ast.walk(self._definition):
            yield from self._by(node)

    def _by(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name in self._declared:
                yield f"it assigns `{name}`"
            case (
                ast.Attribute(ctx=ast.Store() | ast.Del())
                | ast.Subscript(ctx=ast.Store() | ast.Del())
            ):
                if self._is_outside(node.value):
                    yield f"it changes `{ast.unparse(node.value)}`"
            case ast.Call(func=ast.Name(id="open")) if _writes(node):
                yield "it writes files"
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                if method in _FILES:
                    yield "it writes files"
                elif self._is_outside(value) and self._is_changed_by(method, value):
                    yield f"it changes `{ast.unparse(value)}`"

    def _is_outside(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self._own

    def _is_changed_by(self, method: str, node: ast.expr) -> bool:
        value = self._value(node)
        if method in _WRITING:
            return isinstance(value, io.IOBase) or hasattr(value, "writerow")
        return method in _CHANGING and isinstance(value, _CONTAINERS)

    def _value(self, node: ast.expr) -> Any:
        """What the expression is now; nothing of the script's is called to know."""
        match node:
            case ast.Name(id=name):
                return self._values.get(name, _UNKNOWN)
            case ast.Attribute(value=owner, attr=name):
                return getattr(self._value(owner), "__dict__", _NOTHING).get(name, _UNKNOWN)
            case _:
                return _UNKNOWN


def _bound_names(definition: ast.FunctionDef | ast.Lambda) -> Iterator[str]:
    """Names that the function, or one within it, binds for itself."""
    for node in ast.walk(definition):
        match node:
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) if node is not definition:
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((each.asname or each.name).split(".")[0] for each in names)


def _closure_of(plain: Any) -> dict[str, Any]:
    """The names that a function closes over, with their values."""
    try:
        return dict(inspect.getclosurevars(plain).nonlocals)
    except (TypeError, ValueError):
        return {}


def _writes(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
    return any(
        isinstance(mode, ast.Constant) and not _WRITE_MODES.isdisjoint(str(mode.value))
        for mode in modes
    )
