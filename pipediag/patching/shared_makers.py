"""Functions that make pipelines in several places, and whether a change of them suits each."""

from __future__ import annotations

import libcst as cst

from pipediag.patching.source import Source, called_name

_TAKE_A_FUNCTION = frozenset(
    "apply filter flat_map from_generator group_by_window interleave map reduce scan take_while "
    "bucket_by_sequence_length".split()
)
_CHOOSE = (cst.If, cst.IfExp, cst.Match)


def makes_alike(source: Source, function: cst.FunctionDef) -> bool:
    """Whether all that it makes has the same operations with the same functions.

    So it is where nothing in it is chosen, and what is handed to it is neither called nor reaches a
    function of the pipeline: then it gives data, sizes and the like.
    """
    inside = [node for node in source.nodes if function in source.ancestors(node)]
    if any(isinstance(node, _CHOOSE) for node in inside):
        return False
    given = {node.name.value for node in inside if isinstance(node, cst.Param)}
    return not any(
        isinstance(node, cst.Name) and node.value in given and _acts(source, function, node)
        for node in inside
    )


def _acts(source: Source, function: cst.FunctionDef, name: cst.Name) -> bool:
    """Whether what is done to the elements may hang on it."""
    node: cst.CSTNode = name
    for above in source.ancestors(name):
        if above is function:
            return False
        if isinstance(above, cst.FunctionDef | cst.Lambda):
            return True
        if isinstance(above, cst.Call):
            if above.func is name:
                return True
            called = called_name(above)
            of_arguments = node is not above.func
            if of_arguments and called is not None and called.value in _TAKE_A_FUNCTION:
                return True
        node = above
    return False
