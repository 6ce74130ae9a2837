"""The source of the script's own code, as a syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache


@lru_cache(maxsize=64)
def parsed(file: str) -> ast.Module | None:
    """None where there is no source, or none of Python's."""
    source = "".join(linecache.getlines(file))
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def around(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """What of the tree lies around a line, the outermost first."""
    within: ast.AST | None = tree
    while within is not None:
        following = None
        for child in ast.iter_child_nodes(within):
            first, last = getattr(child, "lineno", None), getattr(child, "end_lineno", None)
            if first is not None and last is not None and first <= line <= last:
                following = child
        if following is not None:
            yield following
        within = following
