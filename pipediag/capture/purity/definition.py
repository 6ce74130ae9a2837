"""The syntax of a function that is at hand, found by where its code says that it stands."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from functools import lru_cache
from types import CodeType, FunctionType

Definition = ast.FunctionDef | ast.Lambda


def definition_of(function: FunctionType) -> Definition | None:
    """The `def` or `lambda` of a function; None where its source is not there or does not fit."""
    code = function.__code__
    inspect.getsourcefile(code)  # lets `linecache` find sources that lie in no file, as a cell's
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    tree = _parsed(text)
    if tree is None:
        return None
    fitting = [node for node in ast.walk(tree) if _fits(node, code)]
    if sys.version_info < (3, 11) and len(fitting) > 1:
        return None
    # Of lambdas within one another the innermost that holds all of the code.
    return min(fitting, key=_extent, default=None)  # type: ignore[arg-type, return-value]


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _fits(node: ast.AST, code: CodeType) -> bool:
    match node:
        case ast.FunctionDef(name=name, decorator_list=decorators):
            lines = [node.lineno, *(one.lineno for one in decorators)]
            return name == code.co_name and min(lines) == code.co_firstlineno
        case ast.Lambda():
            return code.co_name == "<lambda>" and _holds(node, code) and _names_agree(node, code)
    return False


def _holds(node: ast.Lambda, code: CodeType) -> bool:
    if sys.version_info < (3, 11):
        # Its instructions have lines and no columns there.
        return node.lineno == code.co_firstlineno
    begin, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    for line, last_line, column, last_column in code.co_positions():
        if None in (line, last_line, column, last_column) or line == last_line == 0:
            continue
        if column == last_column == 0:
            continue  # the instruction that enters the function stands nowhere
        if not (begin <= (line, column) and (last_line, last_column) <= end):
            return False
    return True


def _names_agree(node: ast.Lambda, code: CodeType) -> bool:
    given = node.args
    listed = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return tuple(one.arg for one in listed) == code.co_varnames[: len(listed)]


def _extent(node: ast.expr | ast.stmt) -> int:
    return ((node.end_lineno or 0) - node.lineno) * 100_000 + (node.end_col_offset or 0)
