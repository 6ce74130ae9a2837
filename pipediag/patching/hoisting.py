"""A dataset that a loop creates anew in each pass, created once before the loop instead.

A cache in memory belongs to the dataset object: of one that is created for every epoch it keeps
nothing.
"""

from __future__ import annotations

from itertools import takewhile

import libcst as cst

from pipediag.patching.names import bound, free_name, modules, names_in, references
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    called,
    chain_root,
    insertion,
    name_of,
    replaced,
    walk,
)
from pipediag.patching.statements import Statement, assigned, statement_of, whole_lines

_PASS_ON = frozenset({"enumerate", "tqdm", "trange", "zip"})
"""Functions that go through a dataset that they are given, once for each call."""
_STATEFUL = frozenset({"iter", "next", "as_numpy_iterator", "make_initializable_iterator"})
_Loop = cst.For | cst.While


def line_to_hoist(source: Source, made: cst.CSTNode) -> int | None:
    """Return the line of the statement that creates a dataset in a loop and may do so before it.

    `made` is the call that creates it, or the name that this call calls. None where what the call
    is given changes in the loop, or where only some passes create it.
    """
    try:
        return source.line(_found(source, made))
    except NotPatchableError:
        return None


def hoisted(source: Source, line: int) -> list[Change]:
    """Return the changes by which the statement of that line creates its dataset before the loop.

    A `for` statement goes over a new name; an assignment moves.
    """
    for node in source.nodes:
        if isinstance(node, cst.For) and source.line(node) == line:
            made = _created(node.iter)
            name, loop = free_name(source, "training_data"), _outermost(source, node)
            above = _before(source, loop, f"{name} = {source.code(made)}")
            return [above, replaced(source.span(made), name)]
        if isinstance(node, cst.SimpleStatementLine) and source.line(node) == line:
            lines = whole_lines(source, node)
            text = source.code(node)
            return [_before(source, _outermost(source, node), text), Change(lines)]
    raise NotPatchableError("Two of the changes affect the same place.")


def _before(source: Source, loop: _Loop, text: str) -> Change:
    start = source.span(loop).start
    return insertion(source.line_start(start), f"{source.indent(start)}{text}{source.newline}")


def _found(source: Source, made: cst.CSTNode) -> Statement:
    """Return the statement in the loop that creates the dataset."""
    statement = statement_of(source, made)
    if isinstance(statement, cst.For):
        expression = _created(statement.iter)
    elif isinstance(statement, cst.SimpleStatementLine) and (given := assigned(statement)):
        expression = given[1]
    else:
        raise NotPatchableError("The statement does not name the dataset.")
    loop = _outermost(source, statement)
    if made not in walk(expression):
        raise NotPatchableError("The dataset is created elsewhere.")
    within = takewhile(lambda one: one is not loop, source.ancestors(statement))
    if any(isinstance(one, cst.If | cst.Try | cst.With | cst.Match) for one in within):
        raise NotPatchableError("Only some passes of the loop create it.")
    changed = bound(source, loop) | _bases(loop)
    if any(references(source, name, expression) for name in changed):
        raise NotPatchableError("What it is created of changes in the loop.")
    if _is_worked_on(source, loop, expression):
        raise NotPatchableError("The loop may change what it is created of.")
    if any(called(one) in _STATEFUL for one in source.all(cst.Call, expression)):
        raise NotPatchableError("The loop goes on with one iterator.")
    if source.around(loop, cst.FunctionDef) is None and _functions_read(source, changed):
        raise NotPatchableError("A function reads what changes in the loop.")
    if isinstance(statement, cst.SimpleStatementLine):
        _refuse_rebinding(source, loop, statement)
    return statement


def _is_worked_on(source: Source, loop: _Loop, expression: cst.BaseExpression) -> bool:
    """Return True if the loop calls something for its effect, with what the dataset is created of:
    `random.shuffle(files)`, `buffer.extend(...)`."""
    makers = {name_of(one).value for one in source.all(cst.Call, expression) if called(one)}
    read = names_in(source, expression) - makers - modules(source).keys()
    inside = set(walk(expression))
    for call in source.all(cst.Call, loop):
        if call in inside or not isinstance(source.parent(call), cst.Expr):
            continue
        if read & {name for part in (call.func, *call.args) for name in names_in(source, part)}:
            return True
    return False


_TRAIN = frozenset("apply_gradients evaluate fit predict reduce train_on_batch".split())
_DRAW = frozenset("choice choices permutation sample".split())


def only_makes(source: Source, function: cst.FunctionDef, call: cst.CSTNode) -> bool:
    """Return True if a function does nothing but return the dataset that a call in it makes.

    It neither goes over data nor draws random numbers, which would be the same in all epochs.
    """
    inner = [
        node
        for node in walk(function.body)
        if next(one for one in source.ancestors(node) if isinstance(one, _FUNCTION)) is function
    ]
    for node in inner:
        if isinstance(node, cst.For | cst.While | cst.Yield):
            return False
        if isinstance(node, cst.Call):
            code = source.code(node.func)
            unused = isinstance(source.parent(node), cst.Expr)
            if unused or "random" in code or called(node) in _TRAIN | _DRAW:
                return False
    returned = [one.value for one in inner if isinstance(one, cst.Return) and one.value is not None]
    made = {
        given[0]
        for one in inner
        if isinstance(one, cst.SimpleStatementLine) and (given := assigned(one))
        if call in walk(one) or chain_root(given[1]) == given[0]
    }
    return bool(returned) and all(
        call in walk(one) or (isinstance(one, cst.Name) and one.value in made) for one in returned
    )


_FUNCTION = cst.FunctionDef | cst.Lambda


def _bases(loop: _Loop) -> set[str]:
    """Return names of objects of which the loop sets an attribute or an entry."""
    found: set[str] = set()
    for each in walk(loop):
        target: cst.CSTNode | None = None
        if isinstance(each, cst.AssignTarget | cst.AugAssign):
            target = each.target
        while isinstance(target, cst.Attribute | cst.Subscript):
            target = target.value
            if isinstance(target, cst.Name):
                found.add(target.value)
    return found


def _functions_read(source: Source, names: set[str]) -> bool:
    """Return True if a function of the file reads one of the module's names."""
    for function in source.all(cst.FunctionDef):
        own = bound(source, function.body)
        own |= {one.name.value for one in source.all(cst.Param, function)}
        if any(references(source, name, function.body) for name in names - own):
            return True
    return False


def _created(iterated: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a `for` goes over, without `enumerate` and the like around it."""
    while isinstance(iterated, cst.Call) and called(iterated) in _PASS_ON and iterated.args:
        iterated = iterated.args[0].value
    return iterated


def _outermost(source: Source, statement: cst.CSTNode) -> _Loop:
    """Return the outermost loop around the statement in the same function."""
    found: _Loop | None = None
    for above in source.ancestors(statement):
        if isinstance(above, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            break
        if isinstance(above, _Loop):
            found = above
    if found is None:
        raise NotPatchableError("The statement is in no loop.")
    return found


def _refuse_rebinding(source: Source, loop: _Loop, statement: cst.SimpleStatementLine) -> None:
    given = assigned(statement)
    assert given is not None
    setting = (
        one for one in walk(loop) if isinstance(one, cst.AssignTarget | cst.AugAssign | cst.For)
    )
    if sum(given[0] in names_in(source, one.target) for one in setting) != 1:
        raise NotPatchableError("The loop gives its name to something else, too.")
