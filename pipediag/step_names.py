"""Names, attributes and entries that code reads and sets, by its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator


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


def places_of(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    """Return attributes and entries that are read or set, as `self.weight` and `settings[...]`."""
    found: set[str] = set()
    for node in nodes_of(nodes):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, context):
            entry = isinstance(node, ast.Subscript)
            found.add(f"{ast.unparse(node.value)}[...]" if entry else ast.unparse(node))
    return found


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


def state_of(
    nodes: Iterable[ast.AST], context: type[ast.expr_context], given: Container[str] = ()
) -> set[str]:
    """Return the attributes and entries that nodes read or set, by their own names: `.weight` and
    `['key']`; but for entries of what is `given`."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Attribute(attr=name, ctx=ctx) if isinstance(ctx, context):
                found.add(f".{name}")
            case ast.Subscript(value=of, slice=ast.Constant(value=str(key)), ctx=ctx):
                if isinstance(ctx, context) and next(named_in(ast.walk(of)), "") not in given:
                    found.add(f"[{key!r}]")
            case ast.Call(func=ast.Attribute(attr="update"), keywords=entries):
                if context is ast.Store:
                    found |= {f"[{one.arg!r}]" for one in entries}
    return found


_LIBRARIES = frozenset(
    "keras math numpy scipy tensorflow tensorflow_probability tf_keras time".split()
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def places_apart(trees: Iterable[ast.Module], loop: ast.AST) -> set[ast.AST]:
    """Return attributes and entries that no other code can know: those of libraries, and of what a
    function, but one around the loop, makes for itself."""
    found: set[ast.AST] = set()
    for tree in trees:
        names = {
            alias.asname or alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if (getattr(node, "module", None) or alias.name).partition(".")[0] in _LIBRARIES
        }
        found |= _rooted_in(names, [tree])
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and loop not in ast.walk(node):
                found |= _rooted_in(_made_in(node), [node])
    return found


def entries_of(names: Container[str], nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Return the entries of these names that nodes read or set."""
    return {one for one in _rooted_in(names, nodes) if isinstance(one, ast.Subscript)}


def _rooted_in(names: Container[str], parts: Iterable[ast.AST]) -> set[ast.AST]:
    places = ast.Attribute | ast.Subscript | ast.Call
    return {one for one in nodes_of(parts) if isinstance(one, places) and _root(one) in names}


def _root(node: ast.expr) -> str:
    """Return the name that a place or a method begins with; an empty text where it is none."""
    root = node.func if isinstance(node, ast.Call) else node
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return root.id if isinstance(root, ast.Name) else ""


def _made_in(function: ast.FunctionDef) -> set[str]:
    """Return names of a function that are always set to a container or an object made there."""
    nodes = [*ast.walk(function)]
    assigned = [one for one in nodes if isinstance(one, ast.Assign) and _is_new(one.value)]
    made = [each.id for one in assigned for each in one.targets if isinstance(each, ast.Name)]
    inner = nodes_of(one for one in nodes if isinstance(one, _Function) and one is not function)
    stored = [one for one in nodes if isinstance(getattr(one, "ctx", None), ast.Store)]
    all_sets = [one.id for one in stored if isinstance(one, ast.Name)]
    others = {*named_in(inner), *(arg.arg for arg in nodes if isinstance(arg, ast.arg))}
    others |= {name for one in nodes if isinstance(one, ast.Global) for name in one.names}
    return {one for one in made if made.count(one) == all_sets.count(one)} - others


def _is_new(value: ast.expr) -> bool:
    """Return True for a container's code, and for the call of a class by its usual spelling."""
    if isinstance(value, ast.Call):
        name = next(named_in([value.func]), "")
        return name in ("dict", "list") or name[:1].isupper()
    return isinstance(value, ast.Dict | ast.List | ast.DictComp | ast.ListComp)
