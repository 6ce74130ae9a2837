"""A shuffle moved into the function that its dataset is handed to.

    batches(files.shuffle(1000))  ->  batches(files, shuffle_buffer=1000)

The function gets a parameter, so that its other callers' datasets stay unshuffled.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from pipediag.patching.arguments import argument, with_arguments
from pipediag.patching.chains import check_names, inserted, removed
from pipediag.patching.factories import given_for
from pipediag.patching.names import free_name
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, insertion
from pipediag.patching.statements import (
    assigns,
    behind,
    chain_from,
    condition_around,
    deleted,
    function_around,
    receiver,
    starts_with_its_name,
    statement_of,
)

_PARAMETER = "shuffle_buffer"


def handed_over(
    source: Source,
    shuffle: cst.Call,
    maker: Source,
    after: cst.Call,
    uses: Sequence[cst.CSTNode],
) -> tuple[list[Change], list[Change]]:
    """Return the changes of the caller's file, and those of the file with the function.

    Args:
        source: file of the shuffle and of the call that its dataset is handed to.
        shuffle: the call that moves.
        maker: file of the function; may be the same.
        after: call in the function behind which the shuffle comes to stand.
        uses: names of the function in `source`.

    Raises:
        NotPatchableError: the dataset is handed over in another way, or the shuffle's arguments
            can't be written in the function.
    """
    function = function_around(maker, after)
    if function is None:
        raise NotPatchableError("The two calls are not written as one chain.")
    given = _parameter(function, after)
    buffer = argument(shuffle, "buffer_size")
    others = [arg for arg in shuffle.args if arg is not buffer]
    if buffer is None or any(not _is_constant(arg.value) for arg in others):
        raise NotPatchableError("The arguments of `shuffle` can't be handed to a function.")
    call = _call_with(source, shuffle, function, given, uses)
    name = free_name(maker, _PARAMETER)
    size = _operand(source, buffer.value)
    here = condition_around(source, shuffle)
    statement = here or statement_of(source, shuffle)
    if statement is not (there := statement_of(source, call)):
        check_names(source, shuffle, statement, there)
    if here is not None:
        size = f"{size} if {_operand(source, here.test)} else 0"
    changes = [deleted(source, here)] if here is not None else removed(source, shuffle)
    changes += with_arguments(source, call, {name: size})
    rest = "".join(f", {source.code(arg).rstrip(', ')}" for arg in others)
    last = function.params.params[-1]
    added = [insertion(maker.span(last).end, f", {name}=0")]
    found = assigns(maker, after)
    if found is not None and starts_with_its_name(maker, after):
        rows = found[1]
        lines = [f"if {name}:", f"    {rows} = {rows}.shuffle({name}{rest})"]
        added.append(behind(maker, found[0], lines))
    else:
        apply = f".apply(lambda rows: rows.shuffle({name}{rest}) if {name} else rows)"
        added += inserted(maker, after, apply)
    return changes, added


def _parameter(function: cst.FunctionDef, after: cst.Call) -> str:
    """Return the parameter that is the dataset that reaches the call."""
    parameters = function.params
    if (
        parameters.kwonly_params
        or parameters.posonly_params
        or parameters.star_kwarg is not None
        or isinstance(parameters.star_arg, cst.Param)
    ):
        raise NotPatchableError("The function's parameters are of several kinds.")
    root: cst.BaseExpression | None = after
    while isinstance(root, cst.Call):
        root = receiver(root)
    names = [each.name.value for each in parameters.params]
    if not isinstance(root, cst.Name) or root.value not in names:
        raise NotPatchableError("The two calls are not written as one chain.")
    return root.value


def _call_with(
    source: Source,
    shuffle: cst.Call,
    function: cst.FunctionDef,
    name: str,
    uses: Sequence[cst.CSTNode],
) -> cst.Call:
    """Return the one call of the function that is handed the shuffled dataset."""
    found = []
    for use in uses:
        call = source.parent(use)
        if not isinstance(call, cst.Call) or call.func is not use:
            continue
        value = given_for(function, name, call)
        try:
            chain_from(source, value, shuffle)
        except NotPatchableError:
            continue
        found.append(call)
    if len(found) != 1:
        raise NotPatchableError("The two calls are not written as one chain.")
    return found[0]


def _operand(source: Source, value: cst.BaseExpression) -> str:
    """Return the text of an expression, with parentheses where `if` and `else` would part it."""
    code = source.code(value)
    return f"({code})" if isinstance(value, cst.IfExp | cst.Lambda | cst.NamedExpr) else code


def _is_constant(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Name):
        return value.value in ("True", "False", "None")
    return isinstance(value, cst.Integer)
