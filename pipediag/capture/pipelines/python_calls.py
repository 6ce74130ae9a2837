"""Builtins and modules' functions that the code of a Python function names."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_BETWEEN = frozenset({"EXTENDED_ARG", "PUSH_NULL"})


def module_functions(function: Callable[..., Any]) -> list[str]:
    """Return the full names of builtins and modules' functions in its code, sorted.

    `time.sleep`, or `print` for a builtin. A name counts for what it is bound to: an attribute of
    an element, or a function of the script that is called `print`, is none of them. Functions that
    this one calls are not looked into.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    known = {**vars(builtins), **getattr(function, "__globals__", {}), **_closure(function, code)}
    found = (_full_name(path, known) for path in _paths(code, frozenset(known)))
    return sorted({name for name in found if name is not None})


def _closure(function: Any, code: CodeType) -> dict[str, Any]:
    bound: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            bound[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            bound[name] = None
    return bound


def _paths(code: CodeType, known: frozenset[str]) -> Iterator[list[str]]:
    """Each name with the attributes that are taken of it: `np.random.uniform`."""
    known -= {*code.co_varnames, *code.co_cellvars}
    path: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in _BETWEEN:
            continue
        if path and instruction.opname in _ATTRIBUTES:
            path.append(instruction.argval)
            continue
        if path:
            yield path
        named = instruction.opname in _NAMES and instruction.argval in known
        path = [instruction.argval] if named else []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _paths(constant, known)


def _full_name(path: list[str], known: Mapping[str, Any]) -> str | None:
    """Return what the path leads to where that is a module's function; nothing is called."""
    owner: Any = None
    value = known[path[0]]
    for name in path[1:]:
        if not isinstance(value, ModuleType) or name not in vars(value):
            return None
        owner, value = value, vars(value)[name]
    if not callable(value) or isinstance(value, type):
        return None
    name = getattr(value, "__name__", path[-1])
    if getattr(builtins, name, None) is value:
        return str(name)
    if owner is not None:
        return f"{owner.__name__}.{path[-1]}"
    module = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    return f"{module}.{name}"
