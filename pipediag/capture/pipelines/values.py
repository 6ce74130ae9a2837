"""Values that code of the script names, and which of them it sets again: a trace would keep them.

The source is read as a syntax tree, next to the lines that run now. Nothing of it is run.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from pipediag.capture.callsites import (
    frames,
    is_in_a_loop,
    is_users,
    locals_of,
    package_of,
    parsed,
    script_files,
    unwrap,
)
from pipediag.step_source import called_name

UNKNOWN: Any = object()
CONTAINERS = (list, dict, set, bytearray, deque)
CHANGING = frozenset(
    "add append appendleft clear difference_update discard extend extendleft insert "
    "intersection_update pop popitem popleft remove reverse rotate setdefault sort "
    "symmetric_difference_update update".split()
)
"""Methods that change a container."""
_OF_PYTHON = (bool, int, float, str)
_WHILE_MADE = ("__init__", "build")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = (
    _Function | ast.Lambda | ast.ClassDef | ast.Module | ast.ListComp | ast.SetComp | ast.DictComp
    | ast.GeneratorExp
)  # fmt: skip
_Loop = ast.For | ast.AsyncFor | ast.While


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
    codes = [code for one in functions if (code := getattr(unwrap(one), "__code__", None))]
    sources = {_source(code.co_filename): None for code in codes}
    sources |= dict.fromkeys(_Now(None).sources())
    files = [one for one in sources if one is not None]
    others = set(script_files()) - {one.path for one in files}
    elsewhere = "".join(line for path in others for line in linecache.getlines(path))
    within = [own for code in codes for one in files if (own := one.definition(code)) is not None]
    nodes = (node for one in within for node in ast.walk(one) if isinstance(node, ast.Attribute))
    return {
        name
        for name in {node.attr for node in nodes if isinstance(node.ctx, ast.Store)}
        if all(one.hands_on(name, within) for one in files)
        and not re.search(rf"\.{name}\b", elsewhere)
    }


def set_again(
    function: Callable[..., Any], together: Iterable[Callable[..., Any]] = ()
) -> str | None:
    """Return a name or an attribute that a function reads, and that other code of its file, or of
    one whose code runs, may set or change behind the line that runs now, as in "`self.weight`";
    None where none shows.

    `together` are functions that are traced with it.
    """
    plain = unwrap(function)
    code: CodeType | None = getattr(plain, "__code__", None)
    source = _source(code.co_filename) if code is not None else None
    definition = source.definition(code) if source is not None and code is not None else None
    if code is None or source is None or definition is None:
        return None
    names = {**plain.__globals__, **closure_of(plain)}
    owner, me = getattr(function, "__self__", None), None
    if owner is not None and code.co_argcount:
        me = code.co_varnames[0]
        names[me] = owner
    now = _Now(definition, together)
    others = [one for one in now.sources() if one is not source]
    # What it trains is read as it is traced.
    for one in (source, *others):
        if (frozen := one.set_again_of("trainable", now)) is not None:
            return f"`{ast.unparse(frozen)}`"
    for node in ast.walk(definition):
        root: Any = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
            continue
        home = source.home(root)
        is_own = definition in (home, *source.around(home))
        if is_own and root.id != me:
            continue
        value = value_of(node, names)
        # Which object of another file a name means is not known, but for values.
        is_kept = isinstance(node, ast.Attribute) and (_is_value(value) or _is_filled(value))
        within = (source, *others) if is_kept else (source,)
        if any(one.sets_again(node, value, now) for one in within):
            return f"`{ast.unparse(node)}`"
    return None


def other_argument(code: CodeType, caller: FrameType, values: Mapping[str, Any]) -> str | None:
    """Return an argument of a function, if it is no tensor and may be another one in other calls,
    as in "`rate`"; None where none shows.

    `values` are those of the parameters; what is missing is read from the frame that calls it.
    """
    source, calls = _source(code.co_filename), _calls(code, caller)
    now = _Now(source.definition(code) if source is not None else None)
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
    code, source, outer = frame.f_code, _source(frame.f_code.co_filename), calling(frame)
    if source is None:
        return False
    definition, now = source.definition(code), _Now(None)
    calls = _calls(code, outer) if outer is not None else []
    in_a_loop = [one for one in calls if source.is_in_a_loop(one)]
    for one in source.set_like(written):
        if source.comes(one, now, False) or (in_a_loop and source.function(one) is definition):
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
    source, line = _source(caller.f_code.co_filename), caller.f_lineno
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


def _differs(code: CodeType, caller: FrameType, name: str, now: _Now) -> bool:
    """Return True if calls of a function may give a parameter other values."""
    source, calls = _source(caller.f_code.co_filename), _calls(code, caller)
    given = [_given(call, code, name) for call in calls]
    written = [one for one in given if one is not None]
    constant = all(isinstance(one, ast.Constant) for one in written)
    if source is None or not given or given[0] is None or constant:
        return False
    makes_it = isinstance(given[0], ast.Call) and source.is_in_a_loop(given[0])
    if makes_it or len({ast.unparse(one) for one in written}) > 1:
        return True
    definition, parameters = source.definition(caller.f_code), _parameters(caller.f_code)
    for node in ast.walk(given[0]):
        if source.sets_again(node, UNKNOWN, now):
            return True
        if not isinstance(node, ast.Name) or source.home(node) is not definition:
            continue
        outer = calling(caller)
        if outer is None:
            continue
        if node.id in parameters and _differs(caller.f_code, outer, node.id, now):
            return True
        is_made = any(source.is_of_call(one) for one in source.set_like(node))
        made_in = source.around(now.definition) if now.definition is not None else ()
        several = len(_calls(caller.f_code, outer)) > 1 or _place(caller.f_code) in now.again
        if is_made and several and definition not in made_in:
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


_Place = tuple[str, str, int]
"""A function, by its file, its name and the line at which it begins; of a module 0."""


def _place(code: CodeType) -> _Place:
    is_module = code.co_name == "<module>"
    return code.co_filename, code.co_name, 0 if is_module else code.co_firstlineno


class _Now:
    """The lines that run now, and the definition of a function that would be traced, with others
    that it calls."""

    def __init__(
        self, definition: ast.AST | None, together: Iterable[Callable[..., Any]] = ()
    ) -> None:
        own = [one for one in frames() if is_users(one.f_code.co_filename)]
        codes = [(one.f_code, one.f_lineno) for one in own]
        self.definition = definition
        self.traced = {_place(unwrap(one).__code__) for one in together}
        self.lines = {_place(code): line for code, line in reversed(codes)}
        self.called = {code.co_name for code, _ in codes} | {getattr(definition, "name", "")}
        self.again: set[_Place] = set()
        """Functions that a loop of the script calls, also through others."""
        in_a_loop = False
        for frame in reversed(own):
            if in_a_loop:
                self.again.add(_place(frame.f_code))
            of_script = package_of(frame.f_code.co_filename) is None
            in_a_loop |= of_script and is_in_a_loop(frame.f_code, frame.f_lasti)

    def sources(self) -> list[_Source]:
        """Return the script's files of which code runs."""
        paths = dict.fromkeys(path for path, _, _ in self.lines if package_of(path) is None)
        return [source for path in paths if (source := _source(path)) is not None]


@lru_cache(maxsize=16)
def _source(path: str) -> _Source | None:
    tree = parsed(path)
    return _Source(path, tree) if tree is not None else None


class _Source:
    """A file's code, by what it sets."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path, self._tree = path, tree
        nodes = list(ast.walk(tree))
        self._above = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        self._definitions = {
            self._place(node): node for node in nodes if isinstance(node, _Function)
        }
        self._bound: set[tuple[ast.AST, str]] = set()
        self._declared: dict[tuple[ast.AST, str], type[ast.stmt]] = {}
        """Names that a function declares as global or nonlocal."""
        self.read: dict[str, list[ast.expr]] = defaultdict(list)
        """Names and attributes that are read, by their last names."""
        self._set: dict[str, list[ast.expr]] = defaultdict(list)
        """Names and attributes that are set, by their last names."""
        self._changed: dict[str, list[ast.expr]] = defaultdict(list)
        """Those whose contents are changed."""
        for node in nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                self.read[name].append(node)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self._set[name].append(node)
                self._bound.add((self._scope(node), name))
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                self._set[name].append(node)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                self._bound.add((self._scope(node), name))
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                self._bound.add((self._scope(node), name))
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self._declared |= {(self._scope(node), name): type(node) for name in names}
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                self._changed[_last_name(value)].append(value)
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CHANGING:
                self._changed[_last_name(value)].append(value)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around one, the innermost first."""
        while node in self._above:
            node = self._above[node]
            yield node

    def _scope(self, node: ast.AST) -> ast.AST:
        return next(one for one in self.around(node) if isinstance(one, _Scope))

    def _place(self, node: ast.AST) -> _Place:
        if not isinstance(node, _Function):
            return self.path, "<module>", 0
        first = min(one.lineno for one in (node, *node.decorator_list))
        return self.path, node.name, first

    def definition(self, code: CodeType) -> ast.AST | None:
        return self._definitions.get(_place(code))

    def home(self, node: ast.Name) -> ast.AST:
        """Return the function, class or module whose variable a name is."""
        scopes = (one for one in self.around(node) if isinstance(one, _Scope))
        for depth, scope in enumerate(scopes):
            declared = self._declared.get((scope, node.id))
            if declared is ast.Global:
                break
            seen = not depth or not isinstance(scope, ast.ClassDef)
            if declared is None and seen and (scope, node.id) in self._bound:
                return scope
        return self._tree

    def set_again_of(self, attribute: str, now: _Now) -> ast.expr | None:
        """Return where a function that runs now sets such an attribute later, of any object."""
        found = (one for one in self._set[attribute] if isinstance(one, ast.Attribute))
        return next((one for one in found if self.comes(one, now, False)), None)

    def sets_again(self, node: ast.AST, value: Any, now: _Now) -> bool:
        """Return True if the name or attribute, which has that value now, may get another one, or a
        container other contents."""
        match node:
            case ast.Name(id=name):
                home = self.home(node)
                alike = [one for one in self._set[name] if self._is_of(one, home)]
                if any(self.comes(one, now, self.function(one) is not home) for one in alike):
                    return True
                changed = [one for one in self._changed[name] if self._is_of(one, home)]
            case ast.Attribute(attr=name):
                if isinstance(value, property):  # as a learning rate, which is a variable
                    return False
                written, is_value = ast.unparse(node), _is_value(value)
                for one in self._set[name]:
                    other = is_value or ast.unparse(one) == written
                    if isinstance(one, ast.Attribute) and other and self.comes(one, now, is_value):
                        return True
                changed = [one for one in self._changed[name] if isinstance(one, ast.Attribute)]
            case _:
                return False
        return _is_filled(value) and any(self.comes(one, now, True) for one in changed)

    def hands_on(self, attribute: str, within: list[ast.AST]) -> bool:
        """Return True if an attribute is read only in these functions, behind what sets it, or
        behind the call of the object that sets it."""
        alike = [one for one in self._set[attribute] if isinstance(one, ast.Attribute)]
        if any(isinstance(self._above[one], ast.AugAssign) for one in alike):
            return False
        for one in self.read[attribute]:
            if not isinstance(one, ast.Attribute):
                continue
            own = self.function(one)
            always = (
                other
                for other in alike
                if self.function(other) is own
                and not any(isinstance(above, ast.If | _Loop) for above in self.around(other))
            )
            by_call = (
                call.func
                for call in self.calls
                if self.function(call) is own and _made_of(call.func) == _made_of(one.value)
            )
            written = ast.unparse(one)
            before = [*(other for other in always if ast.unparse(other) == written), *by_call]
            if own not in within or not any(other.lineno < one.lineno for other in before):
                return False
        return True

    def set_like(self, written: ast.expr) -> Iterator[ast.expr]:
        """Yield where a name or attribute is set, but for the targets of loops."""
        home = self.home(written) if isinstance(written, ast.Name) else None
        for one in self._set[_last_name(written)]:
            outer = (above for above in self.around(one) if not isinstance(above, ast.Tuple))
            of_loop = isinstance(next(outer), ast.For | ast.comprehension)
            same = ast.unparse(one) == ast.unparse(written)
            if same and not of_loop and (home is None or self._is_of(one, home)):
                yield one

    def is_of_call(self, node: ast.expr) -> bool:
        """Return True if what a name is set to comes from a call."""
        within = next(one for one in self.around(node) if isinstance(one, ast.stmt))
        value = getattr(within, "value", None)
        return value is not None and any(isinstance(one, ast.Call) for one in ast.walk(value))

    def is_in_a_loop(self, node: ast.AST) -> bool:
        return any(isinstance(one, _Loop) for one in self.around(node))

    def _calls_of(self, own: _Function, now: _Now) -> list[tuple[_Source, ast.expr]]:
        """Return where a function is called, by its name alone; nothing where it is also given
        away, or where Python or Keras may call it."""
        if own.name.startswith("__") or own.name == "call":
            return []
        sources = {self: None, **dict.fromkeys(now.sources())}
        named = [
            (source, one)
            for source in sources
            for one in source.read[own.name]
            if own not in source.around(one)
        ]
        return named if all(source.is_called(one) for source, one in named) else []

    def is_called(self, node: ast.expr) -> bool:
        above = self._above[node]
        return isinstance(above, ast.Call) and above.func is node

    def _is_of(self, node: ast.AST, home: ast.AST) -> bool:
        return isinstance(node, ast.Name) and self.home(node) is home

    def function(self, node: ast.AST) -> ast.AST:
        return next(one for one in self.around(node) if isinstance(one, _Function | ast.Module))

    def comes(
        self, node: ast.AST, now: _Now, unknown: bool, seen: frozenset[ast.AST] = frozenset()
    ) -> bool:
        """Return True if code may run behind the line that runs now, before the function that would
        be traced is called again. `unknown` is the answer for functions that do not run now, but
        for those whose calls are over; `seen` are functions that are asked about already."""
        around, own = list(self.around(node)), self.function(node)
        is_traced = now.definition in around or self._place(own) in now.traced
        if is_traced or getattr(own, "name", None) in _WHILE_MADE or own in seen:
            return False
        line = now.lines.get(self._place(own))
        if line is None:
            named = self._calls_of(own, now) if unknown and isinstance(own, _Function) else None
            if not named:
                return unknown and own is not self._tree
            return any(source.comes(one, now, True, seen | {own}) for source, one in named)
        # A loop that makes the function anew makes another trace.
        made_in = [] if now.definition is None else list(self.around(now.definition))
        if unknown and self._place(own) in now.again and own not in made_in:
            return True
        loops = (one for one in around[: around.index(own)] if isinstance(one, _Loop))
        if any(one.lineno <= line <= (one.end_lineno or 0) for one in loops if one not in made_in):
            return True
        at = getattr(node, "lineno", 0)
        later = (one for one in self.calls if at > line and one.lineno > at)
        return any(called_name(one) in now.called and self.function(one) is own for one in later)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _made_of(node: ast.expr) -> str:
    """Return the code of a list or an object for one of its entries."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node)


def _is_filled(value: Any) -> bool:
    """Return True for a container and an array: their contents may change."""
    return isinstance(value, CONTAINERS) or type(value).__name__ == "ndarray"


def _is_value(value: Any) -> bool:
    """Return True for a value of Python, an array and a tensor, and not for a variable."""
    kind = type(value)
    is_array = hasattr(kind, "dtype") and hasattr(kind, "shape") and not hasattr(kind, "assign")
    return isinstance(value, _OF_PYTHON) or is_array
