"""Functions of the script that run the code of a changed file, while that is tried.

What is timed is then what a patch would write.
"""

from __future__ import annotations

import ast
import gc
import linecache
import tokenize
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from pipediag.capture.replay import NotReplayableError

_CHANGED = ".pipediag"
"""Ends the name under which AutoGraph finds the changed file's text."""


def exchanged(files: Mapping[str, str]) -> Iterator[tuple[FunctionType, str, CodeType]]:
    """Find the functions whose code differs in the changed files, by path, with the other code.

    Files differ within functions alone, so that these are the same in number and order. Functions
    of the module that only a changed file has are defined, and its imports made: nothing of the
    script uses them.
    """
    for path, text in files.items():
        with tokenize.open(path) as file:
            own, changed = ast.parse(file.read()), ast.parse(text)
        name = path + _CHANGED
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        there = set(map(_added_as, own.body))
        added = [node for node in changed.body if _added_as(node) not in there | {None}]
        names = {name for node in added for name in _names(node)}
        changed.body = [node for node in changed.body if node not in added]
        before, after = functions_of(own, path), functions_of(changed, name)
        if [code.co_name for code in before] != [code.co_name for code in after]:
            raise NotReplayableError("The changed file defines other functions.")
        others = {
            (one.co_name, one.co_firstlineno): other
            for one, other in zip(before, after, strict=True)
            if _differ(one, other)
        }
        definitions = compile(ast.Module([*added], []), name, "exec", dont_inherit=True)
        for function in gc.get_objects():
            if type(function) is not FunctionType or function.__code__.co_filename != path:
                continue
            code = function.__code__
            found = others.get((code.co_name, code.co_firstlineno))
            if found is not None and found.co_freevars == code.co_freevars:
                if not function.__globals__.keys() >= names:
                    exec(definitions, function.__globals__)
                yield function, "__code__", found


def _added_as(statement: ast.stmt) -> str | None:
    """Return the name of a function, or the text of an import; None for what no patch adds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return ast.unparse(statement)
    return statement.name if isinstance(statement, ast.FunctionDef) else None


def _names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    aliases = statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else []
    return [one.asname or one.name.partition(".")[0] for one in aliases]


def functions_of(source: str | ast.Module, file: str) -> list[CodeType]:
    """Return the code of all functions in a file's source, in their order."""
    codes = _inside(compile(source, file, "exec", dont_inherit=True))
    return sorted(codes, key=lambda code: code.co_firstlineno)


def _inside(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)


def _differ(one: CodeType, other: CodeType) -> bool:
    """Return True if two functions do different things, wherever they stand."""

    def done(code: CodeType) -> tuple[Any, ...]:
        constants = [done(one) if isinstance(one, CodeType) else one for one in code.co_consts]
        return code.co_code, code.co_names, repr(constants)

    return done(one) != done(other)
