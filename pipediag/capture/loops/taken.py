"""The number of batches that the source takes of its data at most, where it leaves the rest."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from pipediag.capture.loops.syntax import around, calls_in, in_body, lines_of
from pipediag.step_source import called_name

Names = dict[str, Any]
Read = Callable[[ast.expr, Names], Any]
"""Returns the value of an expression, with the values of its names, as far as it can be read."""


def most_of_line(tree: ast.Module, line: int, read: Read, names: Names) -> int | None:
    """Return how many batches are taken of the data whose iterator a line makes, by the loop whose
    header that is, or by `next` in loops; None where the source does not tell."""
    scope: ast.AST = tree
    statement: ast.stmt | None = None
    for node in around(tree, line):
        scope = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else scope
        statement = node if isinstance(node, ast.stmt) else statement
    match statement:
        case ast.For(iter=ast.Call() as gone_through):
            beside = _beside_the_data(gone_through, read, names)
            return min([*beside, *_until_left(statement, read, names)], default=None)
        case ast.For():
            return min(_until_left(statement, read, names), default=None)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            made = called_name(call) == "iter"
            return _by_next(scope, name, line, read, names) if made else None
    return None


def _beside_the_data(call: ast.Call, read: Read, names: Names) -> list[int]:
    """Return the lengths that `zip(range(100), data)` and `islice(data, 100)` state."""
    given = [read(one, names) for one in call.args]
    if called_name(call) == "islice":
        return [one for one in given[1:] if type(one) is int and len(given) == 2]
    return [len(one) for one in given if type(one) is range and called_name(call) == "zip"]


def _until_left(loop: ast.For, read: Read, names: Names) -> Iterator[int]:
    """Yield the batches that are taken before `if step >= 100: break`, or the like, is met."""
    counters = _counters(loop, read, names)
    for statement in loop.body:
        match statement:
            case ast.AugAssign(target=ast.Name(id=name)) if name in counters:
                counters[name] += 1
            case ast.If(test=test) if any(isinstance(one, ast.Break) for one in statement.body):
                for name, first in counters.items():
                    values = [{**names, name: first + more} for more in range(2)]
                    steps = [_to_go(test, read, one) for one in values]
                    if steps[0] is not None and steps[1] == steps[0] - 1 and steps[0] >= 0:
                        yield steps[0] + 1


def _counters(loop: ast.For, read: Read, names: Names) -> dict[str, int]:
    """Return what counts the batches, with the values at the first one: the name that `enumerate`
    sets, or one that each round adds 1 to; none that anything else in the loop sets."""
    counters = {}
    for statement in loop.body:
        match statement:
            case ast.AugAssign(ast.Name(id=name), ast.Add(), ast.Constant(value=1)):
                counters[name] = read(ast.Name(name, ast.Load()), names)
    match loop.iter, loop.target:
        case ast.Call(args=[_, *start], keywords=[]), ast.Tuple(elts=[ast.Name(id=name), *_]):
            if called_name(loop.iter) == "enumerate":
                counters[name] = read(start[0], names) if start else 0
    nodes = [one for one in ast.walk(loop) if isinstance(one, ast.Name)]
    stored = [one.id for one in nodes if isinstance(one.ctx, ast.Store)]
    once = {name: first for name, first in counters.items() if stored.count(name) == 1}
    return {name: first for name, first in once.items() if type(first) is int}


def _to_go(test: ast.expr, read: Read, names: Names) -> int | None:
    """Return by how much a counter lacks what a test compares it with; None for other tests."""
    match test:
        case ast.BoolOp(ast.And(), [given, ast.Compare(comparators=[limit]) as compared]):
            # As in `if limit and step >= limit`, where 0 or None stands for no limit.
            match given:
                case ast.Compare(tested, [ast.Gt() | ast.IsNot()], [ast.Constant(value=0 | None)]):
                    given = tested
            most = read(given, names)
            same = any(ast.dump(one) == ast.dump(given) for one in ast.walk(limit))
            there = same and type(most) is int and most > 0
            return _to_go(compared, read, names) if there else None
        case ast.Compare(left, [ast.GtE() | ast.Gt() | ast.Eq() as sign], [limit]):
            most, counted = read(limit, names), read(left, names)
            if type(most) is int and type(counted) is int:
                return most - counted + isinstance(sign, ast.Gt)
    return None


def _by_next(scope: ast.AST, name: str, line: int, read: Read, names: Names) -> int | None:
    """Return how often loops call `next` for an iterator that a line makes, if nothing else uses
    it."""
    uses = [one for one in ast.walk(scope) if isinstance(one, ast.Name) and one.id == name]
    calls = [one for one in calls_in([scope]) if _is_next(one, name)]
    if not calls or len(uses) != len(calls) + 1:
        return None
    times = [_rounds_of(scope, call.lineno, line, read, names) for call in calls]
    return None if None in times else sum(one for one in times if one is not None)


def _is_next(call: ast.Call, name: str) -> bool:
    match call:
        case ast.Call(func=ast.Name(id="next"), args=[ast.Name(id=given), *_]):
            return given == name
    return False


def _rounds_of(scope: ast.AST, at: int, made_at: int, read: Read, names: Names) -> int | None:
    """Return the rounds of the `for` loop around a line that is not around where the iterator is
    made; None where there are several: the outer one may be that of epochs."""
    rounds, looped = 1, False
    for node in around(scope, at):
        if made_at in lines_of(node):
            continue
        match node:
            case ast.For() if in_body(node, at):
                rounds_of_it = read(node.iter, names)
                if type(rounds_of_it) is not range or looped:
                    return None
                rounds, looped = len(rounds_of_it), True
            case ast.With() | ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr():
                pass
            case ast.stmt() | ast.ListComp() | ast.GeneratorExp() | ast.Lambda():
                return None
    return rounds
