"""The statements that calls stand in, and how they hang together."""

from __future__ import annotations

import libcst as cst

from pipediag.patching.names import bound, is_parameter, references
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    Span,
    chain_root,
    insertion,
    receiver,
)

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def statement_of(source: Source, node: cst.CSTNode) -> Statement:
    """The statement that the node is a part of; with a colon, where it stands in its head."""
    for above in source.ancestors(node):
        if isinstance(above, cst.SimpleStatementSuite):
            break
        if isinstance(above, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            if isinstance(above, cst.SimpleStatementLine) and len(above.body) > 1:
                break
            return above
    raise NotPatchableError("It shares its line with another statement.")


def block_of(source: Source, statement: Statement) -> list[cst.CSTNode]:
    """The statements among which it stands."""
    parent = source.parent(statement)
    if isinstance(parent, cst.Module | cst.IndentedBlock):
        return list(parent.body)
    return [statement]


def assigned(statement: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """Name and value of `name = value`; None for any other statement."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    return (target.value, small.value) if isinstance(target, cst.Name) else None


def assigns(source: Source, call: cst.Call) -> tuple[cst.SimpleStatementLine, str] | None:
    """Statement and name where the call is all of what the statement gives the name."""
    statement = source.around(call, cst.SimpleStatementLine)
    given = assigned(statement) if statement is not None else None
    if statement is None or given is None or given[1] is not call:
        return None
    return statement, given[0]


def rebinds(source: Source, call: cst.Call) -> tuple[cst.SimpleStatementLine, str] | None:
    """The statement `name = name.op(...)` of which the call is all, with the name."""
    found = assigns(source, call)
    root = receiver(call)
    if found is None or not isinstance(root, cst.Name) or root.value != found[1]:
        return None
    return found


def starts_with_its_name(source: Source, call: cst.Call) -> bool:
    """Return True if the statement has the form `name = name....`."""
    found = assigns(source, call)
    return found is not None and chain_root(call) == found[1]


def whole_lines(source: Source, statement: Statement) -> Span:
    """All of the lines of a statement, with the comment behind it and the last line's end."""
    span = source.span(statement)
    return Span(source.line_start(span.start), source.next_line(span.end))


def behind(source: Source, statement: Statement, lines: list[str]) -> Change:
    """New lines behind a statement, as far in as it is."""
    span = source.span(statement)
    indent, newline = source.indent(span.start), source.newline
    at = source.next_line(span.end)
    text = "".join(f"{indent}{line}{newline}" for line in lines)
    if not source.data[:at].endswith(b"\n"):
        text = newline + text.removesuffix(newline)
    return insertion(at, text)


def chain_up(source: Source, below: cst.Call, above: cst.Call) -> list[cst.Call]:
    """Return the calls from one up to another, each called on what the one above it gives.

    Variables between them must be read once: what else reads one would get other elements.
    A condition that only adds an operation does not break a chain: `if c: ds = ds.shuffle(n)`.
    """
    value: cst.BaseExpression | None = below
    chain: list[cst.Call] = []
    while True:
        if isinstance(value, cst.Name):
            value = _value_of(source, value, above)
        if not isinstance(value, cst.Call):
            raise NotPatchableError("The two calls are not written as one chain.")
        chain.append(value)
        if value is above:
            return chain
        value = receiver(value)


def _value_of(source: Source, name: cst.Name, above: cst.Call) -> cst.BaseExpression:
    """Return what was last given to a variable in the block, where nothing else has read it."""
    statement = statement_of(source, name)
    around = source.around(statement, cst.If)
    if around is not None and _adds(source, around, name.value) is not None:
        statement = around
    block = block_of(source, statement)
    index = block.index(statement)
    given = [
        n
        for n in range(index)
        if _gives(block[n], name.value) or _adds(source, block[n], name.value) is above
    ]
    if not given:
        raise NotPatchableError("The two calls are not written as one chain.")
    between = block[given[-1] + 1 : index]
    optional = [each for each in between if _adds(source, each, name.value) is not None]
    if any(name.value in bound(source, each) for each in between if each not in optional):
        raise NotPatchableError(f"`{name.value}` is assigned in more than one place.")
    ends = [n for n in range(index, len(block)) if _gives(block[n], name.value)]
    if statement is around:
        ends = [index]  # what follows reads the dataset with what is added, or without
    last = ends[0] if ends else len(block) - 1
    read = [
        node
        for each in block[given[-1] + 1 : last + 1]
        if each not in optional
        for node in references(source, name.value, within=each)
    ]
    elsewhere = not ends and _read_elsewhere(source, name, block)
    if read != [name] or elsewhere:
        raise NotPatchableError(f"Other code reads `{name.value}` between the two calls.")
    found = assigned(block[given[-1]])
    added = _adds(source, block[given[-1]], name.value) or (found and found[1])
    assert added
    return added


def condition_around(source: Source, call: cst.Call) -> cst.If | None:
    """Return the `if` that only adds this operation to a dataset: `if c: ds = ds.shuffle(n)`."""
    above = source.around(call, cst.If)
    found = rebinds(source, call)
    if above is None or found is None or _adds(source, above, found[1]) is not call:
        return None
    return above


def _adds(source: Source, statement: cst.CSTNode, name: str) -> cst.Call | None:
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        return None
    body = statement.body.body
    found = assigned(body[0]) if len(body) == 1 else None
    if found is None or found[0] != name or not isinstance(found[1], cst.Call):
        return None
    return found[1] if rebinds(source, found[1]) is not None else None


def _gives(statement: cst.CSTNode, name: str) -> bool:
    found = assigned(statement)
    return found is not None and found[0] == name


def _read_elsewhere(source: Source, name: cst.Name, block: list[cst.CSTNode]) -> bool:
    """Return True if other code of the function around the block, or of the file, reads it."""
    function = source.around(name, cst.FunctionDef)
    others = [
        each
        for each in references(source, name.value, within=function)
        if not any(each is node or node in source.ancestors(each) for node in block)
        or source.around(each, cst.FunctionDef) is not function
    ]
    return any(not _is_local(source, each, function) for each in others)


def _is_local(source: Source, name: cst.Name, outside: cst.FunctionDef | None) -> bool:
    function = source.around(name, cst.FunctionDef)
    if function is None or function is outside:
        return False
    return is_parameter(source, name) or name.value in bound(source, function.body)
