"""Names that code reads and sets, by its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def nodes_of(parts: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Iterate over all nodes of parts of a syntax tree."""
    return (one for part in parts for one in ast.walk(part))


Used = dict[str, None]
"""Names in the order in which they are first used."""


def names_of(nodes: Iterable[ast.AST]) -> tuple[Used, Used]:
    """Return names that are read before the nodes set them, and all that they set."""
    names = _Names()
    for node in nodes:
        names.visit(node)
    return names.reads, names.sets


class _Names(ast.NodeVisitor):
    """Goes over code as Python runs it: values before what is set to them."""

    def __init__(self) -> None:
        self.reads: Used = {}
        self.sets: Used = {}

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.sets.setdefault(node.id)
        elif node.id not in self.sets:
            self.reads.setdefault(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.sets:
            self.reads.setdefault(node.target.id)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def _scope(self, node: ast.AST) -> None:
        inside = [*ast.walk(node)]
        names = [one for one in inside if isinstance(one, ast.Name)]
        own = {one.id for one in names if not isinstance(one.ctx, ast.Load)} | self.sets.keys()
        own |= {one.arg for one in inside if isinstance(one, ast.arg)}
        self.reads |= dict.fromkeys(one.id for one in names if one.id not in own)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.sets.setdefault(node.name)

    visit_FunctionDef = visit_ClassDef = visit_Lambda = _scope  # noqa: N815
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _scope  # noqa: N815

    def generic_visit(self, node: ast.AST) -> None:
        fields = [name for name in node._fields if name not in ("target", "targets")]
        if len(fields) < len(node._fields):  # behind the value, or what a loop goes over
            fields.insert(1, "targets" if isinstance(node, ast.Assign) else "target")
        for name in fields:
            value = getattr(node, name, None)
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    self.visit(one)


def name_read(node: ast.AST) -> str | None:
    """Return the name that a node reads or deletes, or adds to."""
    match node:
        case (
            ast.Name(id=name, ctx=ast.Load() | ast.Del()) | ast.AugAssign(target=ast.Name(id=name))
        ):
            return name
    return None


def set_always(statement: ast.stmt) -> set[str]:
    """Return the names that a statement sets in any case."""
    if isinstance(statement, ast.With):
        inner = {name for one in statement.body for name in set_always(one)}
        return inner | names_of(statement.items)[1].keys()
    conditional = isinstance(statement, ast.If | ast.For | ast.While)
    return set() if conditional else set(names_of([statement])[1])


def outside_of(scope: ast.AST, inside: list[ast.stmt]) -> Iterator[ast.AST]:
    """Iterate over the nodes of a scope but for those of the statements inside of it."""
    for child in ast.iter_child_nodes(scope):
        if child not in inside:
            yield child
            yield from outside_of(child, inside)


def named_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Iterate over the names of what nodes name: variables, functions and attributes."""
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
