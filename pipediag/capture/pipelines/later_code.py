"""Code of the script that may run behind the line that runs now.

Files are read as syntax trees, next to the frames that run. Nothing of them is run.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from pipediag.capture.callsites import (
    frames,
    is_in_a_loop,
    is_users,
    package_of,
    parsed,
    script_files,
    unwrap,
)
from pipediag.step_source import called_name

CHANGING = frozenset(
    "add append appendleft clear difference_update discard extend extendleft insert "
    "intersection_update pop popitem popleft remove reverse rotate setdefault sort "
    "symmetric_difference_update update".split()
)
"""Methods that change a container."""
_WHILE_MADE = ("__init__", "build")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Running = _Function | ast.Module
_Scope = (
    _Running | ast.Lambda | ast.ClassDef | ast.ListComp | ast.SetComp | ast.DictComp
    | ast.GeneratorExp
)  # fmt: skip
_Loop = ast.For | ast.AsyncFor | ast.While
_MAYBE = ast.If | _Loop

Place = tuple[str, str, int]
"""A function, by its file, its name and the line at which it begins; of a module 0."""


def place_of(code: CodeType) -> Place:
    """Return the place of what runs."""
    is_module = code.co_name == "<module>"
    return code.co_filename, code.co_name, 0 if is_module else code.co_firstlineno


def definition_of(function: Any) -> tuple[Source, ast.AST] | None:
    """Return where a function, or its code, is defined; None for a lambda, and without source."""
    code = getattr(unwrap(function), "__code__", function)
    source = source_of(code.co_filename) if isinstance(code, CodeType) else None
    found = source.functions.get(place_of(code)) if source is not None else None
    return (source, found) if source is not None and found is not None else None


_MOST_FILES = 100
"""Files of the script that are all read, which takes some ten milliseconds each."""


def script_sources() -> list[Source]:
    """Return the script's files; of very many, those that run."""
    running = (one.f_code.co_filename for one in frames())
    own = [path for path in running if package_of(path) is None and is_users(path)]
    others = script_files()
    paths = dict.fromkeys([*own, *others] if len(others) <= _MOST_FILES else own)
    found = map(source_of, paths)
    return [one for one in found if one is not None]


class Now:
    """The lines that run now, from those on where a traced function is made: what is further out
    makes another one when it runs again."""

    def __init__(
        self, made: tuple[Source, ast.AST] | None = None, traced: Iterable[ast.AST] = ()
    ) -> None:
        """`made` is where the traced function is defined, and `traced` what runs in its trace."""
        self.traced, self.made_in, self.sources = set(traced), set[ast.AST](), script_sources()
        makers, name = set[Place](), ""
        if made is not None:
            source, node = made
            self.made_in, name = {*source.around(node)}, getattr(node, "name", "")
            makers = {source.place(one) for one in self.made_in if isinstance(one, _Running)}
        own = [one for one in frames() if is_users(one.f_code.co_filename)]
        places = [place_of(one.f_code) for one in own]
        depth = next((n for n, place in enumerate(places) if place in makers), len(own))
        self.lines = {place_of(one.f_code): one.f_lineno for one in reversed(own[: depth + 1])}
        self.further_out = {*places[depth + 1 :]}
        self.called = {name, *(one.f_code.co_name for one in own[:depth])}
        """Names of functions that run, and of the traced one."""
        self.again: set[Place] = set()
        """Functions that a loop of the script calls, also through others."""
        in_a_loop = False
        for frame in reversed(own[: depth + 1]):
            if in_a_loop:
                self.again.add(place_of(frame.f_code))
            of_script = package_of(frame.f_code.co_filename) is None
            in_a_loop |= of_script and is_in_a_loop(frame.f_code, frame.f_lasti)

    def precedes(self, found: Iterable[tuple[Source, ast.AST]]) -> bool:
        """Return True if some of this code may run later."""
        return any(source.comes(one, self) for source, one in found)


@lru_cache(maxsize=256)
def source_of(path: str) -> Source | None:
    """Return a file's code; None where it cannot be read."""
    tree = parsed(path)
    return Source(path, tree) if tree is not None else None


class Source:
    """A file's code, by what it reads and sets: names, attributes and entries by their keys."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path, self._tree = path, tree
        nodes = list(ast.walk(tree))
        self._above = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        self.functions = {self.place(one): one for one in nodes if isinstance(one, _Function)}
        self.loops = {one.lineno: one for one in nodes if isinstance(one, _Loop)}
        self._bound: set[tuple[ast.AST, str]] = set()
        """Variables of functions, classes and modules, without those declared as global."""
        self._declared: set[tuple[ast.AST, str]] = set()
        self.read: dict[str, list[ast.expr]] = defaultdict(list)
        self.set: dict[str, list[ast.expr]] = defaultdict(list)
        self.changed: dict[str, list[ast.expr]] = defaultdict(list)
        """Names and attributes of containers, where their contents are changed."""
        self.parts_set: dict[str, list[ast.Attribute]] = defaultdict(list)
        """Attributes that are set, by the code of the objects."""
        for node in nodes:
            self._note(node)
        self._bound -= self._declared

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            is_read = isinstance(node.ctx, ast.Load)
            (self.read if is_read else self.set)[key_of(node)].append(node)
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                self._bound.add((self._scope(node), name))
            case ast.ExceptHandler(name=str(name)) | ast.FunctionDef(name=name):
                self._bound.add((self._scope(node), name))
            case ast.ClassDef(name=name):
                self._bound.add((self._scope(node), name))
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self._declared |= {(self._scope(node), name) for name in names}
            case ast.Attribute(value=value, ctx=ast.Store() | ast.Del()):
                self.parts_set[ast.unparse(value)].append(node)
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                self.changed[key_of(value)].append(value)
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CHANGING:
                self.changed[key_of(value)].append(value)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around one, the innermost first."""
        while node in self._above:
            node = self._above[node]
            yield node

    def _scope(self, node: ast.AST) -> ast.AST:
        return next(one for one in self.around(node) if isinstance(one, _Scope))

    def function(self, node: ast.AST) -> ast.AST:
        """Return the function or the module whose code a node is."""
        return next(one for one in self.around(node) if isinstance(one, _Running))

    def place(self, node: ast.AST) -> Place:
        """Return the place of a function or a module."""
        if not isinstance(node, _Function):
            return self.path, "<module>", 0
        first = min(one.lineno for one in (node, *node.decorator_list))
        return self.path, node.name, first

    def home(self, name: str, node: ast.AST) -> ast.AST:
        """Return the function, class or module whose variable a name is, where a node stands."""
        scopes = (one for one in (node, *self.around(node)) if isinstance(one, _Scope))
        for depth, scope in enumerate(scopes):
            is_seen = not depth or not isinstance(scope, ast.ClassDef)
            if is_seen and (scope, name) in self._bound:
                return scope
        return self._tree

    def is_own(self, name: ast.Name, definition: ast.AST) -> bool:
        """Return True for a variable of a function, or of one within it."""
        home = self.home(name.id, name)
        return definition in (home, *self.around(home))

    def hands_on(self, attribute: str, within: list[ast.AST]) -> bool:
        """Return True if an attribute is read only in these functions, behind what sets it, or
        behind the call of the object that sets it."""
        alike = self.set[f".{attribute}"]
        if any(isinstance(self._above[one], ast.AugAssign) for one in alike):
            return False
        known = [one for one in alike if not any(isinstance(o, _MAYBE) for o in self.around(one))]
        for one in self.read[f".{attribute}"]:
            assert isinstance(one, ast.Attribute)
            own = self.function(one)
            if own not in within:
                return False
            above = (each for each in (*known, *self.calls) if each.lineno < one.lineno)
            before = [each for each in above if self.function(each) is own]
            made = {ast.unparse(getattr(each, "func", each)) for each in before}
            if made.isdisjoint((ast.unparse(one), ast.unparse(one.value))):
                return False
        return True

    def is_of_call(self, node: ast.expr) -> bool:
        """Return True if what a name is set to comes from a call."""
        within = next(one for one in self.around(node) if isinstance(one, ast.stmt))
        value = getattr(within, "value", None)
        return value is not None and any(isinstance(one, ast.Call) for one in ast.walk(value))

    def is_of_loop(self, node: ast.expr) -> bool:
        """Return True for what a loop sets for each of its turns."""
        outer = (above for above in self.around(node) if not isinstance(above, ast.Tuple))
        return isinstance(next(outer), ast.For | ast.comprehension)

    def is_in_a_loop(self, node: ast.AST) -> bool:
        return any(isinstance(one, _Loop) for one in self.around(node))

    def is_called(self, node: ast.expr) -> bool:
        above = self._above[node]
        return isinstance(above, ast.Call) and above.func is node

    def comes(self, node: ast.AST, now: Now, seen: frozenset[ast.AST] = frozenset()) -> bool:
        """Return True if code may run behind the line that runs now, before the function that would
        be traced is called again; `seen` are functions that are asked about already."""
        around, own = list(self.around(node)), self.function(node)
        if getattr(own, "name", "") in _WHILE_MADE or not now.traced.isdisjoint(around):
            return False
        place = self.place(own)
        line = now.lines.get(place)
        if line is None:
            over = own is self._tree or own in now.made_in or place in now.further_out
            return not over and own not in seen and self._is_called_later(own, now, seen | {own})
        is_local = isinstance(node, ast.Name) and self.home(node.id, node) is own
        if place in now.again and not is_local:
            return True
        # A loop that makes the function anew makes another trace.
        loops = [one for one in around[: around.index(own)] if isinstance(one, _Loop)]
        loops = [one for one in loops if one not in now.made_in]
        if any(one.lineno <= line <= (one.end_lineno or 0) for one in loops):
            return True
        at = getattr(node, "lineno", 0)
        later = (one for one in self.calls if at > line and one.lineno > at)
        return any(called_name(one) in now.called and self.function(one) is own for one in later)

    def _is_called_later(self, own: ast.AST, now: Now, seen: frozenset[ast.AST]) -> bool:
        """Return True if a call of a function comes, by its name alone, and for one that is given
        away, or that Python, Keras or a decorator may call."""
        name = getattr(own, "name", "")
        named = [
            (file, one)
            for file in {self: None} | dict.fromkeys(now.sources)
            for one in (*file.read[name], *file.read[f".{name}"])
            if own not in file.around(one)
        ]
        hook = name == "call" or name.startswith(("__", "on_"))
        if hook or not all(file.is_called(one) for file, one in named):
            return True
        decorated = not named and bool(getattr(own, "decorator_list", ()))
        return decorated or any(file.comes(one, now, seen) for file, one in named)


def key_of(node: ast.AST) -> str:
    """Return the name of a variable, or of an attribute or an entry in any object."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return f".{name}"
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return f"[{name!r}]"
    return ""
