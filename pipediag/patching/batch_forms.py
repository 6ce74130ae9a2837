"""Functions of a map rewritten for whole batches, where TensorFlow has a call for each case."""

from __future__ import annotations

import libcst as cst

from pipediag.patching.names import references
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, called_name, replaced
from pipediag.session.recording import RecordedFunction

PER_ROW = "parse_single_example"
PER_BATCH = "parse_example"
_DEPTH = 4
"""Functions that call one another, from that of the map to the one that parses."""


def for_batches(source: Source, call: cst.Call, function: RecordedFunction | None) -> list[Change]:
    """Rewrite the calls in a map's function that take a single row and have a form for batches.

    Args:
        source: file of the map.
        call: the map.
        function: what was recorded of the function.

    Raises:
        NotPatchableError: the call that parses a row isn't found, or other code needs it too.
    """
    if function is None or "ParseExampleV2" not in function.graph_ops:
        return []
    given = next((a.value for a in call.args if a.keyword is None), None) or next(
        (a.value for a in call.args if a.keyword and a.keyword.value == "map_func"), None
    )
    found = _parsers(source, given, call, _DEPTH) if given is not None else []
    if not found:
        raise NotPatchableError(f"The function that calls `{PER_ROW}` was not found in this file.")
    return [replaced(source.span(name), PER_BATCH) for name in found]


def _parsers(
    source: Source, given: cst.BaseExpression, at: cst.CSTNode, depth: int
) -> list[cst.Name]:
    """Return the names to change: in a lambda, or in a function and those that it calls."""
    if isinstance(given, cst.Lambda):
        body: cst.CSTNode = given
    else:
        defined = _definition(source, given, at)
        if defined is None or depth == 0:
            return []
        body = defined
    calls = [
        node
        for node in source.nodes
        if isinstance(node, cst.Call) and body in source.ancestors(node)
    ]
    names = [
        name
        for node in calls
        if (name := called_name(node)) is not None and name.value in (PER_ROW, PER_BATCH)
    ]
    if names:
        _refuse_imported(source, names)
        if isinstance(body, cst.FunctionDef):
            _refuse_shared(source, body)
        return [name for name in names if name.value == PER_ROW]
    inner = [found for node in calls for found in _parsers(source, node.func, node, depth - 1)]
    if inner and isinstance(body, cst.FunctionDef):
        _refuse_shared(source, body)
    return inner


def _definition(
    source: Source, given: cst.BaseExpression, at: cst.CSTNode
) -> cst.FunctionDef | None:
    """Return the one function of the file that a name, or `self.name`, stands for."""
    if isinstance(given, cst.Name):
        classes: list[cst.ClassDef] | None = None
        name = given.value
    elif isinstance(given, cst.Attribute) and source.code(given.value) in ("self", "cls"):
        classes = [each for each in source.ancestors(at) if isinstance(each, cst.ClassDef)][:1]
        name = given.attr.value
    else:
        return None
    found = [
        node
        for node in source.nodes
        if isinstance(node, cst.FunctionDef)
        and node.name.value == name
        and (classes is None or any(each in source.ancestors(node) for each in classes))
    ]
    return found[0] if len(found) == 1 else None


def _refuse_imported(source: Source, names: list[cst.Name]) -> None:
    if any(name.value == PER_ROW and not _is_attribute(source, name) for name in names):
        raise NotPatchableError(
            f"`{PER_ROW}` is imported by its name, and so would have to be `{PER_BATCH}`."
        )


def _is_attribute(source: Source, name: cst.Name) -> bool:
    return isinstance(source.parent(name), cst.Attribute)


def _refuse_shared(source: Source, function: cst.FunctionDef) -> None:
    """Raise where the function is used more than once: other code hands it single rows."""
    name = function.name.value
    attributes = [
        node for node in source.nodes if isinstance(node, cst.Attribute) and node.attr.value == name
    ]
    if len(references(source, name)) + len(attributes) > 1:
        raise NotPatchableError(
            f"`{name}` is used in more than one place, and only one of them would get batches."
        )
