"""Batches copied to the device ahead, where the script gives its training loop the data.

Nothing may follow such a copy, and it hides how many batches there are: variables stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import libcst as cst

from pipediag.patching.chains import argument
from pipediag.patching.evaluation_data import NO_DATASETS, origin
from pipediag.patching.factories import OPERATIONS
from pipediag.patching.sites import DEPTH, iterated_data, uses
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    called,
    name_of,
    only,
    walk,
)
from pipediag.session.loops import Loop

_Data = cst.Name | cst.Attribute | cst.Subscript | cst.Call
_Binding = cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.NamedExpr | cst.AsName


def with_copies_ahead(
    source: Source, loop: Loop, call: str, others: Sequence[Source]
) -> list[Change]:
    """Put the call behind what the loop reads.

    Raises:
        NotPatchableError: that is perhaps no dataset, or another one in another call.
    """
    if loop.kind not in ("keras", "eager") or loop.handed_on:
        raise NotPatchableError("The loop does not read the pipeline itself.")
    read = [one.iter for one in source.all(cst.For) if source.line(one) == loop.line]
    fits = (argument(fit, "x", ("x",)) for fit in source.calls_of("fit", line=loop.line))
    read += [data for data in fits if data is not None]
    whole = only(read, f"Line {loop.line} reads the data of {len(read)} loops.")
    data, calls = iterated_data(whole), {called(one) for one in source.all(cst.Call, whole)}
    files = [source, *others]
    function = source.around(data, cst.FunctionDef)
    if function is not None and isinstance(data, cst.Name) and source.is_parameter(data):
        places = len(uses(files, source, function))
        if places != 1:
            raise NotPatchableError(f"`{function.name.value}` is given data in {places} places.")
    # A `for` goes through anything; what Keras reads in a loop of its own is a dataset.
    known = loop.kind == "keras" or _is_dataset(files, (source, data, None))
    if not isinstance(data, _Data) or not calls.isdisjoint(NO_DATASETS) or not known:
        raise NotPatchableError("What the loop reads is perhaps no dataset.")
    return [Change.insert(source.span(data).end, call)]


_Value = tuple[Source, cst.BaseExpression | None, int | None]
"""An expression with its file; with a place, what stands at that of the tuple that it gives."""


def _is_dataset(files: Sequence[Source], value: _Value, depth: int = 0) -> bool:
    """Return True if the source shows that a value is a dataset: a recorded operation has made it,
    or the program hands it on from there."""
    source, call, place = value
    if (
        isinstance(call, cst.Call)
        and called(call) is not None
        and source.span(name_of(call)).start in source.anchors.values()
    ):
        return place is None
    found = _handed_on(files, *value) if depth < DEPTH else []
    return bool(found) and all(_is_dataset(files, one, depth + 1) for one in found)


def _handed_on(
    files: Sequence[Source],
    source: Source,
    value: cst.BaseExpression | None,
    place: int | None,
) -> list[_Value]:
    """Return the values from which the program may hand one on."""
    match value:
        case cst.Tuple(elements=parts) if place is not None and place < len(parts):
            return [(source, parts[place].value, None)]
        case cst.Call(func=cst.Attribute(value=above, attr=cst.Name(value=name))) if (
            name in OPERATIONS | {"apply"}
        ):
            return [(source, above, place)]
        case cst.Call():
            return [
                (where, one.value, place)
                for where in files
                for one in where.all(cst.Return)
                if (function := where.around(one, cst.FunctionDef))
                and function.name.value == called(value)
            ]
        case cst.Name() if bindings := _bindings(source, value):
            given = [_given(source, value.value, one) for one in bindings]
            return [(source, *one) for one in given] if place is None else []
        case cst.Name() | cst.Attribute():
            with suppress(NotPatchableError):
                return [(*origin(files, source, value), place)]
    return []


def _bindings(source: Source, name: cst.Name) -> list[_Binding]:
    """Return what may have given a variable its value: the last such place that is always run
    before, and those behind it that are under a condition."""
    around, start = [*source.ancestors(name)], source.span(name).start
    own = [one for one in around if isinstance(one, cst.FunctionDef)]
    innermost, found = (*own, None)[0], list[_Binding]()
    for scope in [*own, None]:
        for one in walk(scope.body if scope is not None else source.module):
            if not isinstance(one, _Binding) or source.around(one, cst.FunctionDef) is not scope:
                continue
            target = one.name if isinstance(one, cst.AsName) else one.target
            later = source.span(target).end > start or source.around(one, cst.Assign) in around
            if name.value in source.names_in(target) and not (later and scope is innermost):
                line = source.around(one, cst.SimpleStatementLine)
                always = line is not None and source.parent(line) in around
                found = [one] if always else [*found, one]
        if found or (scope is not None and source.is_parameter(name)):
            break
    return found


def _given(
    source: Source, name: str, binding: _Binding
) -> tuple[cst.BaseExpression | None, int | None]:
    """Return the value of `name = value`, or with its place that of `a, name = value`."""
    above = source.parent(binding)
    match binding, above:
        case cst.AnnAssign(target=cst.Name(), value=value), _:
            return value, None
        case cst.AssignTarget(target=cst.Name()), cst.Assign(value=value):
            return value, None
        case cst.AssignTarget(target=cst.Tuple(elements=parts)), cst.Assign(value=value):
            names = [source.code(one.value) for one in parts if isinstance(one, cst.Element)]
            if name in names and len(names) == len(parts):
                return value, names.index(name)
    return None, None
