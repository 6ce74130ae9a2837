"""Whether a Python function can be shown to change nothing outside of itself.

Trials in a script that goes on call the functions of its pipeline more often than the script would.
What is not plain to see counts as doubtful: a wrong doubt costs a trial, a wrong trust the user's
results. Nothing is called and nothing of the script's is asked; its syntax and the values that its
names have now tell.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Callable, Iterator
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any

from pipediag.capture.callsites import is_users
from pipediag.capture.purity.definition import Definition, definition_of
from pipediag.capture.purity.known import (
    CHANGING,
    is_harmless,
    is_plain,
    makes_random_operations,
)
from pipediag.capture.purity.side_effects import bound_names, closure_of

_DEEPEST = 8
_UNKNOWN = object()
_READING_MODES = frozenset({"r", "rb", "rt"})
_METHODS = (
    *(FunctionType, classmethod, staticmethod, type),
    *(BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType),
)
_INNER = frozenset("get items keys pop reshape setdefault values view".split())
"""Methods that hand out parts of their object."""


def doubt(function: Callable[..., Any], *, traced: bool = False) -> str | None:
    """Why a call more or less might show, as the end of a sentence (`it calls "log"`), or None.

    One that is `traced` makes random operations where another one draws random numbers.
    """
    return _Doubts(traced).about(function, fresh_arguments=True)


class _Doubts:
    """Looks at each function once, however often it is called."""

    def __init__(self, traced: bool) -> None:
        self._traced = traced
        self._seen: set[tuple[FunctionType, bool]] = set()
        self._depth = 0

    def about(self, function: Any, *, fresh_arguments: bool) -> str | None:
        if isinstance(function, functools.partial):
            given = (*function.args, *function.keywords.values())
            called = (one for one in (function.func, *given) if callable(one))
            return self._first(self.about(one, fresh_arguments=False) for one in called)
        owner = getattr(function, "__self__", None)
        plain = inspect.unwrap(getattr(function, "__func__", function))
        if not isinstance(plain, FunctionType):
            call = getattr(type(plain), "__call__", None)  # noqa: B004 - its code is wanted
            if not isinstance(call, FunctionType) or not is_users(call.__code__.co_filename):
                return self._of_others(function)
            return self.about(MethodType(call, plain), fresh_arguments=fresh_arguments)
        if not is_users(plain.__code__.co_filename):
            return self._of_others(function)
        return self._of_users(plain, owner, fresh_arguments)

    def _of_others(self, function: Any) -> str | None:
        harmless = is_harmless(function) or (self._traced and makes_random_operations(function))
        return None if harmless else f"it calls `{_name(function)}`"

    def _of_users(self, plain: FunctionType, owner: Any, fresh_arguments: bool) -> str | None:
        if (plain, fresh_arguments) in self._seen:
            return None
        if self._depth >= _DEEPEST:
            return f"it calls `{plain.__name__}`"
        self._seen.add((plain, fresh_arguments))
        definition = definition_of(plain)
        if definition is None:
            return f"the source of `{plain.__name__}` is not at hand"
        self._depth += 1
        try:
            return self._first(_Body(definition, plain, owner, fresh_arguments, self).doubts())
        finally:
            self._depth -= 1

    def _first(self, found: Iterator[str | None]) -> str | None:
        return next(filter(None, found), None)


class _Body:
    """One function's own lines, and what its names mean."""

    def __init__(
        self,
        definition: Definition,
        plain: FunctionType,
        owner: Any,
        fresh_arguments: bool,
        doubts: _Doubts,
    ) -> None:
        self._definition = definition
        self._doubts = doubts
        self._values = vars(builtins) | plain.__globals__ | closure_of(plain)
        declared = {
            name
            for node in ast.walk(definition)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        self._own = set(bound_names(definition)) - declared
        arguments = {node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)}
        self._fresh = self._own - (set() if fresh_arguments else arguments)
        self._within = {
            node.name for node in ast.walk(definition) if isinstance(node, ast.FunctionDef)
        } - {getattr(definition, "name", "")}
        if owner is not None and definition.args.args:
            me = definition.args.args[0].arg
            self._own.discard(me)
            self._fresh.discard(me)
            self._values = self._values | {me: owner}
        self._leave_out_aliases()

    def doubts(self) -> Iterator[str | None]:
        body = self._definition.body
        for statement in body if isinstance(body, list) else [ast.Return(body)]:
            for node in ast.walk(statement):
                yield from self._about(node)

    def _leave_out_aliases(self) -> None:
        """Names that stand for something from outside are not the function's own objects."""
        known = -1
        while known != len(self._fresh):
            known = len(self._fresh)
            for target, value in _bindings(self._definition):
                if any(not self._is_fresh(part) for part in _handed_on(value)):
                    self._fresh -= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}

    def _about(self, node: ast.AST) -> Iterator[str | None]:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name not in self._own:
                yield f"it assigns `{name}`"
            case (
                ast.Attribute(value=value, ctx=ast.Store() | ast.Del())
                | ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
            ):
                yield None if self._is_fresh(value) else f"it changes `{ast.unparse(value)}`"
            case ast.AugAssign(target=ast.Name() as target) if not self._is_fresh(target):
                yield f"it changes `{target.id}`"
            case ast.withitem(context_expr=used) if not self._is_readable(used):
                yield f"it enters `{ast.unparse(used)}`"
            case ast.Call():
                yield self._about_call(node)
            case ast.For(iter=source) | ast.comprehension(iter=source):
                yield self._about_source(source)
            case ast.YieldFrom(value=source):
                yield self._about_source(source)
            case ast.Return(value=ast.expr() as value) if self._is_iterator(value):
                yield f"it hands out `{ast.unparse(value)}`, which can be gone through only once"
            case ast.Import() | ast.ImportFrom() | ast.ClassDef() | ast.Await():
                yield "it imports, waits or defines a class"

    def _about_source(self, source: ast.expr) -> str | None:
        if self._is_readable(source) and not self._is_iterator(source):
            return None
        return f"it goes through `{ast.unparse(source)}`"

    def _is_readable(self, node: ast.expr) -> bool:
        """Whether the value may be read from without a change; what is local is judged by how."""
        value = self._value(node)
        return value is _UNKNOWN or is_plain(value)

    def _is_iterator(self, node: ast.expr) -> bool:
        return hasattr(self._value(node), "__next__")

    def _about_call(self, call: ast.Call) -> str | None:
        return self._about_callee(call) or next(
            (
                found
                for given in (*call.args, *(each.value for each in call.keywords))
                if (value := self._value(given)) is not _UNKNOWN
                and (callable(value) or hasattr(value, "__next__"))
                and (found := self._about_given(given, value))
            ),
            None,
        )

    def _about_given(self, node: ast.expr, value: Any) -> str | None:
        if hasattr(value, "__next__"):
            return f"it reads from `{ast.unparse(node)}`"
        return self._doubts.about(value, fresh_arguments=False)

    def _about_callee(self, call: ast.Call) -> str | None:
        callee = call.func
        value = self._value(callee)
        if value is open:
            return None if _only_reads(call) else "it writes files"
        if value is not _UNKNOWN:
            found = self._doubts.about(value, fresh_arguments=False)
            return found and f"it calls `{ast.unparse(callee)}`"
        match callee:
            case ast.Attribute(value=base, attr=method):
                return self._about_method(base, method)
            case ast.Name(id=name) if name in self._within:
                return None  # its lines are among these
            case ast.Lambda():
                return None
        return f"it calls `{ast.unparse(callee)}`"

    def _about_method(self, base: ast.expr, method: str) -> str | None:
        if self._is_readable(base) and (method not in CHANGING or self._is_fresh(base)):
            return None
        return f"it calls `{ast.unparse(base)}.{method}`"

    def _is_fresh(self, node: ast.expr) -> bool:
        """Whether the object is the function's own."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return not isinstance(node, ast.Name) or node.id in self._fresh

    def _value(self, node: ast.expr) -> Any:
        """What the expression is now, or `_UNKNOWN`; properties are not asked."""
        match node:
            case ast.Name(id=name) if name not in self._own:
                return self._values.get(name, _UNKNOWN)
            case ast.Attribute(value=owner, attr=name):
                known = self._value(owner)
                return _UNKNOWN if known is _UNKNOWN else _attribute(known, name)
        return _UNKNOWN


def _bindings(definition: Definition) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What names are bound to."""
    for node in ast.walk(definition):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield target, value
            case ast.NamedExpr(target=target, value=value):
                yield target, value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield target, value
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield target, value


def _handed_on(value: ast.expr) -> Iterator[ast.expr]:
    """The parts of an expression that may be its result as they are."""
    match value:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            yield value
        case ast.IfExp(body=one, orelse=other):
            yield from (*_handed_on(one), *_handed_on(other))
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _handed_on(part)
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _INNER:
            yield from _handed_on(owner)


def _attribute(owner: Any, name: str) -> Any:
    if inspect.ismodule(owner):
        return getattr(owner, name, _UNKNOWN)  # some load their parts when they are asked for
    kind = inspect.getattr_static(owner, name, _UNKNOWN)
    if kind is _UNKNOWN or (hasattr(kind, "__get__") and not isinstance(kind, _METHODS)):
        return _UNKNOWN  # to ask a property would run it
    return getattr(owner, name, _UNKNOWN)


def _only_reads(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
    return all(isinstance(mode, ast.Constant) and mode.value in _READING_MODES for mode in modes)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)
