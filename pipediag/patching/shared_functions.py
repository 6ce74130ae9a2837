"""Other uses of a map's functions, which would get batches, too."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

import libcst as cst

from pipediag.patching.chains import needed_argument
from pipediag.patching.sites import uses_in
from pipediag.patching.source import NotPatchableError, Source, called
from pipediag.patching.workspace import Workspace
from pipediag.session.recording import RecordedFunction

Place = tuple[str, int]
"""A file and a line."""
_GIVEN = {"map": "map_func", "filter": "predicate"}
"""Operations and their parameters that take a function."""


def refuse_shared(
    workspace: Workspace, caller: Place, place: Place, called_at: Collection[Place]
) -> None:
    """Raise if the function around a line is called, for single rows, from other lines.

    The line that calls it may be in the function itself: AutoGraph makes a loop's body another one.
    """
    source = workspace.source(place[0])
    function = function_around(source, place[1])
    if function is None:
        return
    loops = [one for one in source.all(cst.For, function) if source.line(one) == caller[1]]
    if caller[0] == place[0] and any(_is_within(source, one, place[1]) for one in loops):
        return
    for each in _read_by(workspace, source.path, *(path for path, _ in called_at)):
        lines = [line for path, line in called_at if path == each.path]
        for use in uses_in(each, source, function):
            if not any(is_at(each, use, line) for line in lines) and not _given_to(each, use):
                raise is_shared(function.name.value)


def refuse_used_beside(workspace: Workspace, function: RecordedFunction) -> None:
    """Raise if a script or a test that is no part of the program uses one of a map's functions."""
    places = places_within(function)
    around = ((path, function_around(workspace.source(path), line)) for path, line in places)
    for path, found in dict.fromkeys(around):
        if found is None:
            continue
        source, name = workspace.source(path), found.name.value
        owner = source.class_of(found)
        for each in workspace.importing(source, owner.name.value if owner else name):
            if not owner or re.search(rf"\.{name}\b".encode(), each.data):
                file = Path(each.path).name
                raise NotPatchableError(f"{file} uses `{name}`, too, and gives it single rows.")


def other_calls(
    workspace: Workspace, source: Source, call: cst.Call, function: RecordedFunction
) -> list[tuple[Source, cst.Call]]:
    """Return the other maps, or filters, of a function, with their files; raise if other code calls
    it."""
    given, own = _function_given(call), source.span(call)
    found: dict[Place, tuple[Source, cst.Call]] = {}
    for where, definition, lines in _definitions(workspace, given, function):
        for each in _read_by(workspace, where.path, source.path):
            for use in uses_in(each, where, definition):
                if each.path == source.path and own.start <= source.span(use).start < own.end:
                    continue
                if any(is_at(each, use, line) for path, line in lines if path == each.path):
                    continue
                other = _given_to(each, use)
                if other is None or called(other) != called(call):
                    raise is_shared(definition.name.value)
                its = _function_given(other)
                alike = source.code(given) == each.code(its) and not is_chosen_around(each, other)
                if its is not use and not alike:
                    raise is_shared(definition.name.value)
                found[each.path, each.span(other).start] = (each, other)
    return list(found.values())


def _given_to(source: Source, use: cst.CSTNode) -> cst.Call | None:
    """Return the map or filter that is given a function, or a lambda or partial that reads it."""
    given = (source.parent(one) for one in source.ancestors(use) if isinstance(one, cst.Arg))
    found = (one for one in given if isinstance(one, cst.Call) and called(one) in _GIVEN)
    return next(found, None)


def _function_given(call: cst.Call) -> cst.BaseExpression:
    return needed_argument(call, _GIVEN.get(called(call) or "", "map_func"))


def is_chosen_around(source: Source, call: cst.Call) -> bool:
    """Return True if the function that a map or filter is given is, or reads, what the function or
    the loop around the call gives a value."""
    given = _function_given(call)
    names: set[str] = set()
    for around in source.ancestors(call):
        if isinstance(around, cst.FunctionDef | cst.For):
            names |= source.bound(around)
        if isinstance(around, cst.FunctionDef):
            names |= {one.name.value for one in source.all(cst.Param, around.params)}
    names -= {one.name.value for one in source.all(cst.Param, given)}
    return any(source.references(name, given) for name in names)


def _definitions(
    workspace: Workspace, given: cst.BaseExpression, function: RecordedFunction
) -> Iterator[tuple[Source, cst.FunctionDef, Collection[Place]]]:
    """Yield the definitions of a map's function and of those that it calls, with the lines at which
    these are known to be called."""
    if function.file is not None and not isinstance(given, cst.Lambda):
        where = workspace.source(function.file)
        own = [
            each
            for each in where.all(cst.FunctionDef)
            if function.line in {where.line(one) for one in (each, *each.decorators)}
        ]
        if not own:
            raise NotPatchableError("Its function has no definition that other code could share.")
        yield from ((where, each, ()) for each in own)
    places = {place for row in function.row_operations for place in row.calls}
    for path, line in dict.fromkeys(
        one for row in function.row_operations for one in row.calls[1:]
    ):
        called_there = function_around(workspace.source(path), line)
        if called_there is not None:
            yield workspace.source(path), called_there, places


def is_lambda(function: RecordedFunction) -> bool:
    """Return True if a map's function is a lambda, around whose line may be a factory."""
    return function.name.endswith("<lambda>")


def places_within(function: RecordedFunction) -> list[Place]:
    """Return a line of a map's function, and those that make its operations, in it and in functions
    that it calls."""
    first = 1 if is_lambda(function) else 0
    places = {one for row in function.row_operations for one in row.calls[first:]}
    if function.file and function.line and not is_lambda(function):
        places.add((function.file, function.line))
    return sorted(places)


def function_around(source: Source, line: int) -> cst.FunctionDef | None:
    """Return the innermost function around a line."""
    functions = [each for each in source.all(cst.FunctionDef) if _is_within(source, each, line)]
    return max(functions, key=lambda each: source.span(each).start, default=None)


def _read_by(workspace: Workspace, *paths: str) -> list[Source]:
    """Return these files, and the others that the program is known to have."""
    found = {path: workspace.source(path) for path in paths}
    others = (one for one in workspace.other_files(paths[0]) if one.path not in found)
    return [*found.values(), *others]


def _is_within(source: Source, node: cst.CSTNode, line: int) -> bool:
    first, last = source.lines(node)
    return first <= line <= last


def is_at(source: Source, node: cst.CSTNode, line: int) -> bool:
    """Return True if a line is one of the node's statement: AutoGraph knows no better."""
    first, last = source.lines(source.around(node, cst.SimpleStatementLine) or node)
    return first <= line <= last


def is_shared(name: str) -> NotPatchableError:
    """Return what says that other code uses a function."""
    return NotPatchableError(
        f"`{name}` is used in more than one place, and only one of them would get batches."
    )
