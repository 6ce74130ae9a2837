"""Calls in a loop of Python that compute the same anew each time, rewritten to compute it once."""

from __future__ import annotations

import libcst as cst

from pipediag.patching.names import bound, last_import, names, names_in
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, called_name, replaced
from pipediag.patching.statements import before, behind, function_around

_LOOPS = (cst.For, cst.While)
_PARAMETERS = ("a", "size", "replace", "p")
"""Of `choice`, in their order."""


def drawn_from_cumulative(source: Source, line: int) -> list[Change]:
    """Draw with weights from their cumulative sum, which is made once.

    That is before the outermost loop of the call's function, or else in a function that keeps the
    sums of the last weights.

    NumPy's `choice(n, size, p=weights)` adds up all weights in each call and searches in the sums
    for uniform numbers (numpy/random/_generator.pyx, `Generator.choice`). The same search in sums
    that are kept gives the same numbers from the same state of the generator.

    Args:
        source: file of the call.
        line: of the call.

    Raises:
        NotPatchableError: there is no such call, or its weights may change from call to call.
    """
    call = _choice(source, line)
    given = _arguments(call)
    weights, size = given["p"], given.get("size")
    if not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("It is not called as a method of a generator.")
    values = _values(source, weights)
    loop, function = _outermost_loop(source, call), function_around(source, call)
    drawn, written = source.code(call.func.value), source.module.code_for_node(weights)
    count = "" if size is None else source.module.code_for_node(size)
    if loop is not None:
        if values & bound(source, loop):
            raise NotPatchableError("The weights get their value in the loop that draws with them.")
        sums = _free(source, "cumulative")
        made = before(
            source,
            loop,
            [
                f"{sums} = {_numpy(source)}.cumsum({written}, dtype=float)",
                f"{sums} /= {sums}[-1]",
            ],
        )
    elif function is not None:
        if values & (bound(source, function.body) | _changed_in_place(source)):
            raise NotPatchableError("The weights may be others in each call of its function.")
        made, name = _kept_sums(source, call)
        sums = f"{name}({written})"
    else:
        raise NotPatchableError("The call stands in no loop and in no function.")
    text = f'{sums}.searchsorted({drawn}.random({count}), side="right")'
    return [made, replaced(source.span(call), text)]


def _changed_in_place(source: Source) -> set[str]:
    """Return the names in targets such as `weights[3]`, and in those of `weights *= 2`."""
    found: set[str] = set()
    for node in source.nodes:
        if isinstance(node, cst.AugAssign) or (
            isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript)
        ):
            found |= names_in(source, node.target)
    return found


def _kept_sums(source: Source, call: cst.Call) -> tuple[Change, str]:
    """Return the definition of a function that keeps the last sums, and its name in the file."""
    after = last_import(source, source.span(call).start)
    if after is None:
        raise NotPatchableError("No import stands before it in the file.")
    name = _free(source, "cumulative_sums")
    lines = [
        "",
        "",
        f"def {name}(weights):",
        '    """Return the normalised sums of weights, added up anew for another array alone."""',
        f'    kept, sums = getattr({name}, "last", (None, None))',
        "    if kept is not weights:",
        f"        sums = {_numpy(source)}.cumsum(weights, dtype=float)",
        "        sums /= sums[-1]",
        f"        {name}.last = weights, sums",
        "    return sums",
    ]
    return behind(source, after, lines), name


def _choice(source: Source, line: int) -> cst.Call:
    found = [
        call
        for call in source.calls.values()
        if (name := called_name(call)) is not None
        and name.value == "choice"
        and source.line(name) == line
    ]
    if len(found) != 1:
        raise NotPatchableError(f"Line {line} calls `choice` {len(found)} times.")
    return found[0]


def _arguments(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """Return the arguments by name: a count, a size and weights, and nothing else."""
    given: dict[str, cst.BaseExpression] = {}
    for place, arg in enumerate(call.args):
        by_place = _PARAMETERS[place] if place < len(_PARAMETERS) else "axis"
        name = arg.keyword.value if arg.keyword is not None else by_place
        if arg.star or name not in _PARAMETERS:
            raise NotPatchableError(f"`choice` is given `{name}`.")
        given[name] = arg.value
    replace = given.pop("replace", None)
    if replace is not None and not (isinstance(replace, cst.Name) and replace.value == "True"):
        raise NotPatchableError("It draws without replacement.")
    if "p" not in given:
        raise NotPatchableError("It draws without weights.")
    if isinstance(given.get("a"), cst.List | cst.Tuple | cst.ListComp):
        raise NotPatchableError("It draws from a list.")
    return given


def _outermost_loop(source: Source, call: cst.Call) -> cst.For | cst.While | None:
    function = function_around(source, call)
    loops = [
        each
        for each in source.ancestors(call)
        if isinstance(each, _LOOPS) and function_around(source, each) is function
    ]
    return loops[-1] if loops else None


def _values(source: Source, node: cst.CSTNode) -> set[str]:
    """Return the names in an expression without those of attributes: `self` of `self.weights`."""
    inside = [each for each in source.nodes if each is node or node in source.ancestors(each)]
    if any(isinstance(each, cst.Call) for each in inside):
        raise NotPatchableError("The weights are computed in the call.")
    return names_in(source, node)


def _numpy(source: Source) -> str:
    for node in source.nodes:
        if isinstance(node, cst.ImportAlias) and source.code(node.name) == "numpy":
            return node.evaluated_alias or "numpy"
    raise NotPatchableError("The file does not import NumPy.")


def _free(source: Source, wanted: str) -> str:
    taken, name, number = names(source), wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name
