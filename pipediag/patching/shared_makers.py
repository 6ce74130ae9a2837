"""Functions that make pipelines in several places, and whether a change of them suits each."""

from __future__ import annotations

import libcst as cst

from pipediag.patching.names import names_in
from pipediag.patching.source import Source, called_name

CALL_WHAT_THEY_ARE_HANDED = frozenset(
    "apply filter flat_map from_generator group_by_window interleave map scan take_while".split()
)
"""Methods of a dataset that call what they are handed while the pipeline of that place is made."""
_TAKE_A_FUNCTION = CALL_WHAT_THEY_ARE_HANDED | {"bucket_by_sequence_length", "reduce"}
_CHOOSE = (cst.If, cst.IfExp, cst.Match)


def makes_alike(source: Source, function: cst.FunctionDef, until: int) -> bool:
    """Whether all that it makes up to an offset has the same operations with the same functions.

    So it is where nothing is chosen up to there, and what is handed to it is neither called nor
    reaches a function of the pipeline, by another name or by going over it neither: then it gives
    data, sizes and the like. What is a pipeline itself may have any operations.
    """
    kinds = (*_CHOOSE, cst.Param, cst.Assign, cst.Name)
    inside: list[cst.CSTNode] = [
        node
        for node in source.nodes
        if isinstance(node, kinds)
        and source.span(node).start < until
        and function in source.ancestors(node)
    ]
    if any(isinstance(node, _CHOOSE) for node in inside):
        return False
    given = {node.name.value for node in inside if isinstance(node, cst.Param)}
    made = _made_of(source, given, inside)
    return not any(
        isinstance(node, cst.Name)
        and (
            (node.value in given and _acts(source, function, node, itself=True))
            or (node.value in made and _acts(source, function, node, itself=False))
        )
        for node in inside
    )


def _made_of(source: Source, given: set[str], inside: list[cst.CSTNode]) -> set[str]:
    """Variables whose values hang on what is given."""
    made: set[str] = set()
    for _ in inside:
        before = len(made)
        for node in inside:
            if isinstance(node, cst.Assign) and names_in(source, node.value) & (given | made):
                targets = [each.target for each in node.targets]
                made |= {each.value for each in targets if isinstance(each, cst.Name)}
        if len(made) == before:
            break
    return made


def _acts(source: Source, function: cst.FunctionDef, name: cst.Name, *, itself: bool) -> bool:
    """Whether what is done to the elements may hang on it, or on what was made of it."""
    node: cst.CSTNode = name
    for above in source.ancestors(name):
        if above is function:
            return False
        if _reaches_a_function(above, node, name) or (itself and _passes_on(above, node, name)):
            return True
        node = above
    return False


def _reaches_a_function(above: cst.CSTNode, node: cst.CSTNode, name: cst.Name) -> bool:
    if isinstance(above, cst.Call):
        called = called_name(above)
        takes = called is not None and called.value in _TAKE_A_FUNCTION
        return above.func is name or (node is not above.func and takes)
    return isinstance(above, cst.FunctionDef | cst.Lambda)


def _passes_on(above: cst.CSTNode, node: cst.CSTNode, name: cst.Name) -> bool:
    match above:
        case cst.For() | cst.CompFor():
            return node is above.iter
        case cst.Assign():
            return not isinstance(node, cst.Call)
        case cst.Attribute():
            return above.value is name
        case _:
            return False
