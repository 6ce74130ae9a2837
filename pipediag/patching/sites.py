"""Calls in the source that made the operations of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import libcst as cst

from pipediag.patching.factories import (
    ANY_ORDER,
    CALL_THEIR_FUNCTION,
    SAME_ELEMENTS,
    builds_alike,
    may_come_to,
)
from pipediag.patching.hoisting import line_to_hoist, only_makes
from pipediag.patching.names import imported_as, references
from pipediag.patching.source import MadeInALoopError, NotPatchableError, Source, called, name_of
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
            f"Line {op.line} does not call `{op.kind}`: the pipeline is built elsewhere."
        )
    ids = {each.id for each in twins}
    # No one call has made both of two that read from each other.
    if len(candidates) == 1 and not any(ids & set(each.parent_ids) for each in twins):
        return candidates[0]
    if len(twins) != len(candidates) or not _one_chain(source, candidates):
        raise NotPatchableError(
            f"Line {op.line} calls `{op.kind}` more than once, and it is unclear which "
            "call this is."
        )
    return candidates[[each.id for each in twins].index(op.id)]


def _candidates(source: Source, op: Operation) -> list[int]:
    """Offsets of calls of that name on the line: of the name, else of the call, else below it.

    Python gives the line of a method's name; of the whole call where that has arguments by stars;
    and of the statement for what AutoGraph has converted.
    """
    named = [(n, call) for n, call in source.calls.items() if called(call) == op.kind]
    by_name = [n for n, call in named if source.line(name_of(call)) == op.line]
    by_call = [n for n, call in named if source.line(call) == op.line]
    statements = [(n, source.around(call, cst.SimpleStatementLine)) for n, call in named]
    by_statement = [n for n, each in statements if each and source.line(each) == op.line]
    return sorted(by_name or by_call or by_statement)


def _one_chain(source: Source, offsets: Sequence[int]) -> bool:
    calls = [source.calls[offset] for offset in offsets]
    return all(
        isinstance(below.func, cst.Attribute)
        and (below.func.value is above or below.func.value in source.ancestors(above))
        for above, below in pairwise(calls)
    )


_LOOPS = (cst.While, cst.CompFor)
_COMPREHENSIONS = (cst.GeneratorExp, cst.BaseComp)
_DEPTH = 8
"""Most functions that call one another; no pipeline is made deeper."""


Suits = Literal["one", "cached", "shuffled_and_cached", "moved", "any"]
"""Pipelines of a factory that a change is right for: the measured one; those built alike up to a
cache, with or without shuffles that stay before it, or around an operation that moves; or any."""
_OPTIONAL = {
    "cached": SAME_ELEMENTS,
    "shuffled_and_cached": SAME_ELEMENTS | {"shuffle"},
    "moved": ANY_ORDER,
}

Callers = dict[str, list[tuple[str, int]]]
"""Functions that make several pipelines, with the files and lines that call them."""


@dataclass(frozen=True)
class Repeats:
    """Nodes in which calls may be made several times, each time for another pipeline or model."""

    files: Sequence[Source]
    """Files of the program, whose calls count."""
    suits: Suits = "one"
    """Pipelines for which the change is right."""
    what: str = "pipeline"
    """The thing that the node makes."""
    lasts: bool = False
    """True if the measured pipeline is known to last for all epochs, so that a loop makes others:
    a cache in these is filled once, for nothing."""
    hoists: list[tuple[str, int]] = field(default_factory=list)
    """Files and lines that create it in a loop, and may do so before the loop."""

    def refuse(
        self,
        source: Source,
        call: cst.CSTNode,
        until: int | None = None,
        depth: int = 0,
        made: bool = True,
    ) -> Callers:
        """Return functions that make several such pipelines, and who calls them.

        Raises where the change is not right for all of them. A function that is handed to an
        operation, as to `flat_map`, counts as called in that place. `until` is the offset of the
        last place that the change touches, where that is not the call's end. `made` says that the
        call returns the pipeline, and does nothing else.
        """
        node = call
        for above in source.ancestors(call):
            if isinstance(above, cst.FunctionDef):
                end = source.span(call).end if until is None else until
                made = made and only_makes(source, above, call)
                return self._refuse_function(source, above, call, end, depth, made)
            if self.suits != "any" and not _is_once(source, above, node):
                self._refuse_loop(source, above, node, call, made)
                if isinstance(above, cst.Lambda) and not _is_handed_to_an_operation(source, above):
                    raise NotPatchableError(
                        f"The lambda that makes the {self.what} may be called any number of times."
                    )
            node = above
        return {}

    def _refuse_loop(
        self, source: Source, above: cst.CSTNode, node: cst.CSTNode, call: cst.CSTNode, made: bool
    ) -> None:
        if isinstance(above, _COMPREHENSIONS):
            raise NotPatchableError("The call is in a comprehension.")
        if not (
            isinstance(above, _LOOPS) or (isinstance(above, cst.For) and node is not above.iter)
        ):
            return
        line = line_to_hoist(source, call) if made and self.suits in _OPTIONAL else None
        if line is not None:
            self.hoists.append((source.path, line))
        elif not (self.lasts and self.suits in _OPTIONAL):
            raise MadeInALoopError(
                f"The call is in a loop, which makes a new {self.what} each time."
            )

    def _refuse_function(
        self,
        source: Source,
        function: cst.FunctionDef,
        call: cst.CSTNode,
        until: int,
        depth: int,
        made: bool,
    ) -> Callers:
        name = function.name.value
        used = [(where, one) for where in self.files for one in _uses_in(where, source, function)]
        used = [one for one in used if may_come_to(source, function, call, one)]
        makers: Callers = {}
        if len(used) > 1:
            makers[name] = sorted({(where.path, where.line(each)) for where, each in used})
            if self.suits == "any":
                return makers
            optional = _OPTIONAL.get(self.suits)
            if (
                optional is None
                or depth >= _DEPTH
                or not all(_is_called(where, each) for where, each in used)
                or not builds_alike(source, function, until, used, optional)
            ):
                raise NotPatchableError(
                    f"`{name}`, which makes it, is used in {len(used)} places, and only "
                    "one of them was measured."
                )
        elif depth >= _DEPTH:
            return {}
        for where, place in used:
            if not (_is_called(where, place) or _is_handed_to_an_operation(where, place)):
                if self.suits == "any":
                    return {}
                raise NotPatchableError(f"`{name}` may be called any number of times.")
            makers |= self.refuse(where, place, _end(where, place), depth + 1, made)
        return makers


def _is_once(source: Source, above: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Return True if the call is made once, as the iterable of a comprehension is."""
    if isinstance(above, cst.CompFor):
        return node is above.iter and isinstance(source.parent(above), _COMPREHENSIONS)
    return isinstance(above, _COMPREHENSIONS) and node is above.for_in


def _uses_in(where: Source, source: Source, function: cst.FunctionDef) -> list[cst.CSTNode]:
    """Return where a file reads a function, or a method, of the file `source`."""
    name = function.name.value
    if isinstance(source.parent(source.parent(function) or function), cst.ClassDef):
        return [each for each in where.all(cst.Attribute) if each.attr.value == name]
    if where.path == source.path:
        return list(references(where, name))
    return imported_as(where, name)


def _end(source: Source, name: cst.CSTNode) -> int:
    parent = source.parent(name)
    return source.span(parent if isinstance(parent, cst.Call) and parent.func is name else name).end


def _is_called(source: Source, name: cst.CSTNode) -> bool:
    parent = source.parent(name)
    return isinstance(parent, cst.Call) and parent.func is name


def _is_handed_to_an_operation(source: Source, function: cst.CSTNode) -> bool:
    argument = source.parent(function)
    call = source.parent(argument) if isinstance(argument, cst.Arg) else None
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in CALL_THEIR_FUNCTION
    )
