"""Which call in the source made an operation of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import libcst as cst

from pipediag.patching.names import references
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.shared_makers import CALL_WHAT_THEY_ARE_HANDED, makes_alike
from pipediag.patching.source import Source, called_name
from pipediag.session.pipeline import Operation


def anchored(source: Source, ops: Sequence[Operation]) -> tuple[Source, dict[str, str]]:
    """The source with the calls of these operations found; for each that was not, why."""
    anchors: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for op in ops:
        twins = [each for each in ops if (each.line, each.kind) == (op.line, op.kind)]
        try:
            anchors[op.id] = _offset(source, op, twins)
        except NotPatchableError as error:
            reasons[op.id] = str(error)
    return replace(source, anchors=anchors), reasons


def _offset(source: Source, op: Operation, twins: Sequence[Operation]) -> int:
    candidates = _candidates(source, op)
    if not candidates:
        raise NotPatchableError(
            f"Line {op.line} calls no `{op.kind}`: the pipeline is made elsewhere."
        )
    if len(candidates) == 1 and not _follow_each_other(twins):
        return candidates[0]
    if len(twins) != len(candidates) or not _one_chain(source, candidates):
        raise NotPatchableError(
            f"Line {op.line} calls `{op.kind}` more than once, and which of them it is can't be "
            "told."
        )
    return candidates[[each.id for each in twins].index(op.id)]


def _follow_each_other(twins: Sequence[Operation]) -> bool:
    """Whether one reads from another, so that no one call has made both."""
    ids = {each.id for each in twins}
    return any(ids & set(each.parent_ids) for each in twins)


def _candidates(source: Source, op: Operation) -> list[int]:
    """Offsets of calls of that name on the line: of the name, else of the call, else below it.

    Python gives the line of a method's name; of the whole call where that has arguments by stars;
    and of the statement for what AutoGraph has converted.
    """
    named = [(n, call) for n, call in source.calls.items() if _called(call) == op.kind]
    by_name = [n for n, call in named if source.line(_name(call)) == op.line]
    by_call = [n for n, call in named if source.line(call) == op.line]
    by_statement = [n for n, call in named if _statement_line(source, call) == op.line]
    return sorted(by_name or by_call or by_statement)


def _called(call: cst.Call) -> str:
    return _name(call).value


def _name(call: cst.Call) -> cst.Name:
    name = called_name(call)
    assert name is not None
    return name


def _statement_line(source: Source, call: cst.Call) -> int | None:
    above = source.ancestors(call)
    statement = next((each for each in above if isinstance(each, cst.SimpleStatementLine)), None)
    return source.line(statement) if statement is not None else None


def _one_chain(source: Source, offsets: Sequence[int]) -> bool:
    """Whether each is called on what the one before it in the text gives."""
    calls = [source.calls[offset] for offset in offsets]
    return all(
        isinstance(below.func, cst.Attribute)
        and (below.func.value is above or below.func.value in source.ancestors(above))
        for above, below in pairwise(calls)
    )


_LOOPS = (cst.While, cst.CompFor)
_COMPREHENSIONS = (cst.GeneratorExp, cst.BaseComp)
_DEPTH = 8
"""Of functions that call one another; no pipeline is made so deep."""


def refuse_repeated(
    source: Source,
    call: cst.CSTNode,
    *,
    suits_all: bool = False,
    what: str = "pipeline",
    script: Source | None = None,
    depth: int = 0,
) -> dict[str, list[int]]:
    """Raises NotPatchableError where the call may be made several times: each makes another one.

    A function that is handed to an operation, as to `flat_map`, counts as called in that place.

    Args:
        source: the file.
        call: in it.
        suits_all: the change may be made to every pipeline that has the same operations.
        what: it makes.
        script: which may call what stands in this file, where that is another one.
        depth: of functions that call one another.

    Returns:
        Functions that make several such pipelines, with the lines that call them.
    """
    node = call
    for above in source.ancestors(call):
        if _is_once(source, above, node):
            node = above
            continue
        if isinstance(above, _LOOPS) or (isinstance(above, cst.For) and node is not above.iter):
            raise NotPatchableError(f"The call stands in a loop, which makes a {what} each time.")
        if isinstance(above, _COMPREHENSIONS):
            raise NotPatchableError("The call stands in a comprehension.")
        if isinstance(above, cst.FunctionDef):
            return _refuse_called_often(source, above, suits_all, what, script, depth)
        if isinstance(above, cst.Lambda) and not _is_handed_to_an_operation(source, above):
            raise NotPatchableError(
                f"How often the lambda that makes the {what} is called is not known."
            )
        node = above
    return {}


def _is_once(source: Source, above: cst.CSTNode, node: cst.CSTNode) -> bool:
    """What a comprehension goes over is made once; so is all of it, seen from there."""
    if isinstance(above, cst.CompFor):
        return node is above.iter and isinstance(source.parent(above), _COMPREHENSIONS)
    return isinstance(above, _COMPREHENSIONS) and node is above.for_in


def _refuse_called_often(
    source: Source,
    function: cst.FunctionDef,
    suits_all: bool,
    what: str,
    script: Source | None,
    depth: int,
) -> dict[str, list[int]]:
    name = function.name.value
    method = isinstance(source.parent(source.parent(function) or function), cst.ClassDef)
    used: list[cst.CSTNode] = [*(_attributes if method else references)(source, name)]
    if len(used) > 1:
        called = not method and all(_is_called(source, each) for each in used)
        if suits_all and called and depth < _DEPTH and makes_alike(source, function):
            makers = {name: sorted({source.line(each) for each in used})}
            for each in used:
                makers |= refuse_repeated(
                    source, each, suits_all=True, script=script, depth=depth + 1
                )
            return makers
        raise NotPatchableError(
            f"The function `{name}` that makes it is used in {len(used)} places, and only one of "
            "them was measured."
        )
    where = source
    if not used and script is not None:
        where, used = script, [*references(script, name), *_attributes(script, name)]
        if len(used) > 1:
            raise NotPatchableError(f"The script uses `{name}` in {len(used)} places.")
    if not used or depth >= _DEPTH:
        return {}
    (place,) = used
    if not (_is_called(where, place) or _is_handed_to_an_operation(where, place)):
        raise NotPatchableError(f"How often `{name}` is called is not known.")
    same = script if where is source else None
    return refuse_repeated(
        where, place, suits_all=suits_all, what=what, script=same, depth=depth + 1
    )


def _attributes(source: Source, name: str) -> list[cst.CSTNode]:
    """Where an attribute of that name is read: `data.make`."""
    return [
        node for node in source.nodes if isinstance(node, cst.Attribute) and node.attr.value == name
    ]


def _is_called(source: Source, name: cst.CSTNode) -> bool:
    parent = source.parent(name)
    return isinstance(parent, cst.Call) and parent.func is name


def _is_handed_to_an_operation(source: Source, function: cst.CSTNode) -> bool:
    argument = source.parent(function)
    call = source.parent(argument) if isinstance(argument, cst.Arg) else None
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in CALL_WHAT_THEY_ARE_HANDED
    )
