"""The syntax tree of a script: what is around a line, and the calls in it."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator

from pipediag.capture.callsites import parsed, script_files


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


def script_trees() -> list[ast.Module]:
    """Return the syntax trees of the script's modules."""
    return [tree for tree in map(parsed, script_files()) if tree is not None]


_BETWEEN_EPOCHS = ("on_epoch_begin", "on_epoch_end")
_REORDERING = ("permutation", "permuted", "sample", "shuffle")


def reordered_in_loops(trees: Iterable[ast.AST], names: Container[str]) -> bool:
    """Return True if a variable or an attribute of one of these names is shuffled, or set to a
    shuffled or drawn order, in a loop or at an epoch's begin or end."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        between = isinstance(node, ast.FunctionDef) and node.name in _BETWEEN_EPOCHS
        if not between and not isinstance(node, ast.For | ast.AsyncFor | ast.While):
            continue
        for inner in ast.walk(node):
            match inner:
                case ast.Call(args=[changed, *_]) if _name(inner.func) == "shuffle":
                    pass
                case ast.Assign(targets=[changed], value=ast.Call(func=made)):
                    if _name(made) not in _REORDERING:
                        continue
                case _:
                    continue
            if _name(changed) in names:
                return True
    return False


def _name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _name(value)
    return None
