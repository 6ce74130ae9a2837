"""The effect of a script's source on its pipeline and model, so that two can be compared.

A small interpreter of straight-line code: a dataset is the chain of calls that made it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

Link = tuple[str, tuple[str, ...]]
"""A call's name and its arguments as text, those by name sorted behind the others."""


@dataclass
class Effect:
    chains: dict[str, tuple[Link, ...]] = field(default_factory=dict)
    """Final value of each variable, and result of each function: `name()`."""
    settings: dict[str, str] = field(default_factory=dict)
    """Values of attributes: `options.autotune.enabled`."""
    calls: list[tuple[Link, ...]] = field(default_factory=list)
    """Statements that are a call: `model.compile(...)`."""

    def option(self, name: str) -> str | None:
        """The value that this option has on any object."""
        found = [value for key, value in self.settings.items() if key.endswith(name)]
        return found[0] if found else None


def effect_of(source: str) -> Effect:
    found = Effect()
    _run(ast.parse(source).body, found, {})
    return found


def _run(body: list[ast.stmt], found: Effect, known: dict[str, tuple[Link, ...]]) -> None:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known[name] = found.chains[name] = _chain(value, known)
            case ast.Assign(targets=[ast.Attribute() as target], value=value):
                found.settings[ast.unparse(target)] = ast.unparse(value)
            case ast.Expr(value=ast.Call() as call):
                found.calls.append(_chain(call, known))
            case ast.FunctionDef(name=name, body=inner):
                for each in inner:
                    if isinstance(each, ast.Return) and each.value is not None:
                        found.chains[f"{name}()"] = _chain(each.value, {})
            case ast.With(body=inner):
                _run(inner, found, known)


def _chain(node: ast.expr, known: dict[str, tuple[Link, ...]]) -> tuple[Link, ...]:
    match node:
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return (*_chain(value, known), (name, _arguments(node)))
        case _:
            return ((ast.unparse(node), ()),)


def _arguments(call: ast.Call) -> tuple[str, ...]:
    named = sorted(f"{each.arg}={ast.unparse(each.value)}" for each in call.keywords)
    return (*(ast.unparse(each) for each in call.args), *named)
