"""The syntax tree of a script: what is around a line, and the calls in it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from functools import lru_cache


@lru_cache(maxsize=64)
def parsed(file: str) -> ast.Module | None:
    """Return the syntax tree of a file; None where there is no source, or none of Python's."""
    source = "".join(linecache.getlines(file))
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def around(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """Iterate over the nodes around a line, the outermost first."""
    within: ast.AST | None = tree
    while within is not None:
        following = None
        for child in ast.iter_child_nodes(within):
            if line in lines_of(child):
                following = child
        if following is not None:
            yield following
        within = following


def lines_of(node: ast.AST) -> range:
    """Return the numbers of the lines that a node is on; none for a node without a place."""
    return range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", None) or -1) + 1)


def in_body(loop: ast.For | ast.AsyncFor | ast.While, line: int) -> bool:
    """Return True for a line of the loop that is not of its header."""
    return loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or 0)


def calls_in(written: Iterable[ast.AST]) -> list[ast.Call]:
    """Return all calls within these nodes."""
    return [node for one in written for node in ast.walk(one) if isinstance(node, ast.Call)]
