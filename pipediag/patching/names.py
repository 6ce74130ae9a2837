"""Names of a file: what TensorFlow is called there, where a name is used, which are free."""

from __future__ import annotations

from itertools import chain, count

import libcst as cst

from pipediag.patching.source import NotPatchableError, Source, walk
from pipediag.session.edits import AUTOTUNE
from pipediag.vocabulary import Scalar

_TUNED = ("num_parallel_calls", "num_parallel_reads", "buffer_size", "cycle_length")


def tensorflow(source: Source) -> str | None:
    """Return TensorFlow's name at the file's outermost level, or None."""
    named = (name for name, module in modules(source).items() if module == "tensorflow")
    return next(named, None)


def needed_tensorflow(source: Source) -> str:
    """Return TensorFlow's name in a file that needs it."""
    name = tensorflow(source)
    if name is None:
        raise NotPatchableError("TensorFlow is not imported under a name in this file.")
    return name


def modules(source: Source) -> dict[str, str]:
    """Return the modules that are imported at the file's outermost level, by their names."""
    return {
        alias.evaluated_alias or source.code(alias.name): source.code(alias.name)
        for statement in _top_imports(source)
        for small in statement.body
        if isinstance(small, cst.Import)
        for alias in small.names
    }


def _top_imports(source: Source) -> list[cst.SimpleStatementLine]:
    return [
        each
        for each in source.module.body
        if isinstance(each, cst.SimpleStatementLine)
        and any(isinstance(small, cst.Import | cst.ImportFrom) for small in each.body)
    ]


def last_import(source: Source, before: int) -> cst.SimpleStatementLine | None:
    """The last import at the outermost level that stands before an offset."""
    found = [each for each in _top_imports(source) if source.span(each).end <= before]
    return found[-1] if found else None


def imported_as(source: Source, name: str) -> list[cst.CSTNode]:
    """Return the places that read what the file imports by that name: `make(x)`, `data.make(x)`."""
    names: set[str] = set()
    modules: set[str] = set()
    for node in source.nodes:
        if isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar):
            names.add(name)
        elif isinstance(node, cst.ImportAlias):
            code = source.code(node.name)
            known = node.evaluated_alias or code.partition(".")[0]
            (names if code == name else modules).add(known)
    attributes = [
        node
        for node in source.all(cst.Attribute)
        if node.attr.value == name and source.code(node.value).partition(".")[0] in modules
    ]
    return [*attributes, *(each for one in sorted(names) for each in references(source, one))]


def is_tuned(name: str, value: Scalar) -> bool:
    """Return True if TensorFlow adapts a parameter of that value while it runs."""
    return value == AUTOTUNE and name in _TUNED


def written(source: Source, name: str, value: Scalar) -> str:
    """A parameter's value as source."""
    if is_tuned(name, value):
        module = tensorflow(source)
        return f"{module}.data.AUTOTUNE" if module else str(AUTOTUNE)
    return f'"{value}"' if isinstance(value, str) and value.isidentifier() else repr(value)


def free_name(source: Source, wanted: str) -> str:
    """Return the wanted name, numbered if need be, so that it does not occur in the file."""
    taken = names_in(source, source.module)
    numbered = (f"{wanted}_{number}" for number in count(2))
    return next(name for name in chain((wanted,), numbered) if name not in taken)


def references(source: Source, name: str, within: cst.CSTNode | None = None) -> list[cst.Name]:
    """Return the places that read a variable of that name; attributes and keywords are none."""
    return [
        node
        for node in source.all(cst.Name, within)
        if node.value == name and _is_read(source, node)
    ]


def is_parameter(source: Source, name: cst.Name) -> bool:
    """Return True if a function around it gets it from its callers."""
    return any(
        each.name.value == name.value
        for above in source.ancestors(name)
        if isinstance(above, cst.FunctionDef | cst.Lambda)
        for each in source.all(cst.Param, above.params)
    )


def _is_read(source: Source, node: cst.Name) -> bool:
    parent = source.parent(node)
    if isinstance(parent, cst.Attribute | cst.Arg):
        return parent.value is node
    named = cst.AssignTarget | cst.AsName | cst.Param | cst.ImportAlias
    return not isinstance(parent, named | cst.FunctionDef | cst.ClassDef)


def bound(source: Source, statement: cst.CSTNode) -> set[str]:
    """Names that a statement, or what is in it, gives a value."""
    found: set[str] = set()
    for node in walk(statement):
        match node:
            case cst.FunctionDef() | cst.ClassDef():
                found.add(node.name.value)
            case cst.ImportAlias():
                found.add(node.evaluated_alias or source.code(node.name).partition(".")[0])
            case cst.AsName(name=target):
                found |= names_in(source, target)
            case (
                cst.AssignTarget(target=target)
                | cst.AnnAssign(target=target)
                | cst.AugAssign(target=target)
                | cst.For(target=target)
                | cst.NamedExpr(target=target)
            ):
                found |= names_in(source, target)
    return found


def names_in(source: Source, part: cst.CSTNode) -> set[str]:
    """Every name that occurs in a part of the file."""
    return {node.value for node in source.all(cst.Name, part)}
