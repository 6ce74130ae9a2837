"""Values that code of the script names, and which of them other code sets later: a trace would keep
them as they were.

Files are read as syntax trees, next to the lines that run now. Nothing of them is run.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

from pipediag.capture.callsites import frames, is_users, locals_of, unwrap
from pipediag.capture.pipelines.later_code import (
    Now,
    Source,
    definition_of,
    key_of,
    place_of,
    script_sources,
    source_of,
)
from pipediag.step_source import called_name

UNKNOWN: Any = object()
CONTAINERS = (list, dict, set, bytearray, deque)
_OF_PYTHON = (bool, int, float, str)
_RATES = ("lr", "learning_rate")
"""Attributes of optimizers that are variables."""


def value_of(written: ast.AST | None, names: Mapping[str, Any]) -> Any:
    """Return the value of a name, or of an attribute that an object keeps; `UNKNOWN` for other
    code, of which nothing is run."""
    match written:
        case ast.Name(id=name):
            return names.get(name, UNKNOWN)
        case ast.Attribute(value=owner, attr=name):
            return inspect.getattr_static(value_of(owner, names), name, UNKNOWN)
    return UNKNOWN


def closure_of(function: Any) -> dict[str, Any]:
    """Return the names that a function closes over, with their values."""
    bound: dict[str, Any] = {}
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        try:
            bound[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            bound[name] = None
    return bound


def handed_on(functions: Iterable[Callable[..., Any]]) -> set[str]:
    """Return attributes that only these functions read, behind what sets them: each trace makes
    them anew."""
    found = [place for one in functions if (place := definition_of(one)) is not None]
    files, within = {*script_sources(), *(one for one, _ in found)}, [node for _, node in found]
    nodes = (node for one in within for node in ast.walk(one) if isinstance(node, ast.Attribute))
    names = {node.attr for node in nodes if isinstance(node.ctx, ast.Store)}
    return {name for name in names if all(one.hands_on(name, within) for one in files)}


def set_again(
    functions: Sequence[Callable[..., Any]], loop: tuple[str, int] | None = None
) -> str | None:
    """Return what functions read that other code may set or change behind the line that runs now,
    as in "`self.weight`"; None where nothing shows.

    The first one is traced, and calls the others. If it is made of a part of a loop, `loop` is the
    file and the line of that one, before which it would be defined.
    """
    places = [definition_of(one) for one in functions]
    source = source_of(loop[0]) if loop is not None else None
    made = (source, source.loops[loop[1]]) if source is not None and loop is not None else places[0]
    now = Now(made, [node for _, node in filter(None, places)])
    for file in now.sources:
        for one in file.set[".trainable"]:  # what it trains is read as it is traced
            if file.comes(one, now):
                return f"`{ast.unparse(one)}`"
    for function, place, where in zip(functions, places, [made, *places[1:]], strict=True):
        # What a library's code reads of itself is its own affair.
        is_librarys = place is not None and loop is None and not is_users(place[0].path)
        if place is None or where is None or is_librarys:
            continue
        for node, value, is_own in _reads(function, *place):
            if now.precedes(_stores(node, value, where, now, is_own=is_own)):
                return f"`{ast.unparse(node)}`"
    return None


def _reads(
    function: Callable[..., Any], source: Source, definition: ast.AST
) -> Iterator[tuple[ast.AST, Any, bool]]:
    """Yield names, attributes and entries that a function reads, with their values, and True for
    what begins with a name of its own."""
    plain, owner = unwrap(function), getattr(function, "__self__", None)
    names, me = {**plain.__globals__, **closure_of(plain)}, None
    if owner is not None and plain.__code__.co_argcount:
        me = plain.__code__.co_varnames[0]
        names[me] = owner
    for node in ast.walk(definition):
        root: Any = node
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name) or not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
            continue
        is_own = root.id != me and source.is_own(root, definition)
        yield node, UNKNOWN if is_own else value_of(node, names), is_own


def _stores(
    node: ast.AST, value: Any, where: tuple[Source, ast.AST], now: Now, *, is_own: bool = False
) -> Iterator[tuple[Source, ast.expr]]:
    """Yield what sets a name, an attribute or an entry that is read there, or changes what it
    names, each with its file.

    Whose an attribute or an entry is, is not known: they count by their own names. Only those that
    have objects must be written alike in the same file.
    """
    (source, at), key, filled = where, key_of(node), _is_filled(value)
    match node:
        case ast.Name(id=name) if not is_own:
            home = source.home(name, at)
            found = source.set[key] + (source.changed[key] if filled else [])
            yield from ((source, one) for one in found if source.home(name, one) is home)
        case ast.Attribute(attr=name) if name not in _RATES and not isinstance(value, property):
            by_name = is_own or filled or _is_value(value)
            for file in now.sources if by_name else [source]:
                found = file.set[key] + (file.changed[key] if filled else [])
                alike = (by_name or ast.unparse(one) == ast.unparse(node) for one in found)
                yield from ((file, one) for one, same in zip(found, alike, strict=True) if same)
        case ast.Subscript() if key and not is_own:
            yield from ((file, one) for file in now.sources for one in file.set[key])
    if _is_of_a_library(value):  # it may read any of its attributes
        for one in source.parts_set[ast.unparse(node)]:
            part = inspect.getattr_static(value, one.attr, None)
            if one.attr not in _RATES and not isinstance(part, property):
                yield source, one


def other_argument(code: CodeType, caller: FrameType, values: Mapping[str, Any]) -> str | None:
    """Return an argument of a function, if it is no tensor and may be another one in other calls,
    as in "`rate`"; None where none shows.

    `values` are those of the parameters; what is missing is read from the frame that calls it.
    """
    calls, now = _calls(code, caller), Now(definition_of(code))
    names = {**caller.f_globals, **locals_of(caller)}
    for name in _parameters(code):
        written = _given(calls[0], code, name) if calls and name not in values else None
        value = values.get(name, value_of(written, names))
        if value is not UNKNOWN and not _is_tensor(value) and _differs(code, caller, name, now):
            return f"`{name}`"
    return None


def made_again(frame: FrameType, written: ast.expr) -> bool:
    """Return True if the object that a name or an attribute has in the line that runs is another
    one in a later epoch, or when the function is called again; one of a list that a loop goes over
    is not."""
    code, source, outer = frame.f_code, source_of(frame.f_code.co_filename), calling(frame)
    if source is None:
        return False
    definition, now = source.functions.get(place_of(code)), Now()
    calls = _calls(code, outer) if outer is not None else []
    in_a_loop = [one for one in calls if source.is_in_a_loop(one)]
    for _, one in _stores(written, UNKNOWN, (source, written), now):
        comes = source.comes(one, now) or (in_a_loop and source.function(one) is definition)
        if comes and not source.is_of_loop(one):
            return True
    given = isinstance(written, ast.Name) and written.id in _parameters(code)
    return given and outer is not None and _differs(code, outer, ast.unparse(written), now)


def _parameters(code: CodeType) -> tuple[str, ...]:
    """Return the names of a function's parameters, without a method's own object."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names[names[:1] in (("self",), ("cls",)) :]


def _is_tensor(value: Any) -> bool:
    """Return True for tensors, also in containers: one trace serves all of a shape."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return all(map(_is_tensor, value))
    kind = type(value)  # an object of the script's may answer with anything
    is_array = hasattr(kind, "dtype") and hasattr(kind, "shape")
    return value is None or is_array or hasattr(kind, "_type_spec")


def calling(frame: FrameType) -> FrameType | None:
    """Return the frame of the script's that has called the function of another one."""
    outer = frames(frame.f_back) if frame.f_back is not None else ()
    return next((one for one in outer if is_users(one.f_code.co_filename)), None)


def _calls(code: CodeType, caller: FrameType) -> list[ast.Call]:
    """Return the calls of a function in the file that calls it, the one that runs first.

    Calls of other functions with its name are left out, and those of what is not known, unless they
    are written as the one that runs.
    """
    source, line = source_of(caller.f_code.co_filename), caller.f_lineno
    names = {**caller.f_globals, **locals_of(caller)}
    found = [one for one in source.calls if called_name(one) == code.co_name] if source else []
    found.sort(key=lambda one: not one.lineno <= line <= (one.end_lineno or 0))
    running = {ast.unparse(one.func) for one in found[:1]}

    def is_own(call: ast.Call) -> bool:
        value = value_of(call.func, names)
        if value is UNKNOWN:
            return ast.unparse(call.func) in running
        other: CodeType | None = getattr(unwrap(value), "__code__", None)
        # One of another name may call it, as what a decorator makes does.
        return other is code or (other is not None and other.co_name != code.co_name)

    return [one for one in found if is_own(one)]


def _differs(code: CodeType, caller: FrameType, name: str, now: Now) -> bool:
    """Return True if calls of a function may give a parameter other values."""
    source, calls = source_of(caller.f_code.co_filename), _calls(code, caller)
    given = [_given(call, code, name) for call in calls]
    written = [one for one in given if one is not None]
    constant = all(isinstance(one, ast.Constant) for one in written)
    if source is None or not given or given[0] is None or constant:
        return False
    several = len({ast.unparse(one) for one in written}) > 1
    if several or (isinstance(given[0], ast.Call) and source.is_in_a_loop(given[0])):
        return True
    definition = source.functions.get(place_of(caller.f_code))
    # Another call of what makes the function makes another trace.
    outer = calling(caller) if definition not in now.made_in else None
    again = outer is not None and (
        place_of(caller.f_code) in now.again or len(_calls(caller.f_code, outer)) > 1
    )
    for node in ast.walk(given[0]):
        stores = [*_stores(node, UNKNOWN, (source, node), now)]
        if now.precedes(stores):
            return True
        if not isinstance(node, ast.Name) or source.home(node.id, node) is not definition:
            continue
        made_again = again and any(source.is_of_call(one) for _, one in stores)
        is_given = node.id in _parameters(caller.f_code)
        if made_again or (outer and is_given and _differs(caller.f_code, outer, node.id, now)):
            return True
    return False


def _given(call: ast.Call, code: CodeType, name: str) -> ast.expr | None:
    """Return what a call gives a parameter; None for its default, and where that is not known."""
    position = _parameters(code).index(name)
    by_position = code.co_varnames.index(name) < code.co_argcount
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if by_position and position < len(call.args):
        return call.args[position]
    return next((one.value for one in call.keywords if one.arg == name), None)


def _is_filled(value: Any) -> bool:
    """Return True for a container and an array: their contents may change."""
    return isinstance(value, CONTAINERS) or type(value).__name__ == "ndarray"


def _is_value(value: Any) -> bool:
    """Return True for a value of Python, an array and a tensor, and not for a variable."""
    kind = type(value)
    is_array = hasattr(kind, "dtype") and hasattr(kind, "shape") and not hasattr(kind, "assign")
    return isinstance(value, _OF_PYTHON) or is_array


def _is_of_a_library(value: Any) -> bool:
    """Return True for an object whose class is in an installed package."""
    file = getattr(sys.modules.get(type(value).__module__), "__file__", None)
    return isinstance(file, str) and not is_users(file)
