"""Draws with weights, rewritten to add the weights up once."""

from __future__ import annotations

import libcst as cst

from pipediag.patching.names import free_name, last_import, module_name
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, called_name, replaced
from pipediag.patching.statements import behind

_PARAMETERS = ("a", "size", "replace", "p")
"""Of `choice`, in their order."""
_NAME = "weighted_choice"
_FUNCTION = """\
def NAME(rng, values, size, weights):
    \"\"\"Draw like `rng.choice(values, size, p=weights)`; sums of the last weights are kept.\"\"\"
    if weights is None:
        return rng.choice(values, size)
    kept, sums = getattr(NAME, "last", (None, None))
    if kept is None or not NUMPY.array_equal(kept, weights):
        kept = NUMPY.array(weights, dtype=float)
        sums = NUMPY.cumsum(kept)
        sums /= sums[-1]
        NAME.last = kept, sums
    drawn = sums.searchsorted(rng.random(size), side="right")
    return drawn if NUMPY.ndim(values) == 0 else NUMPY.asarray(values)[drawn]
"""


def weighted_choice(name: str = _NAME, numpy: str = "np") -> list[str]:
    """Return the lines of the function, for a file in which it and NumPy have these names."""
    return _FUNCTION.replace("NAME", name).replace("NUMPY", numpy).splitlines()


def drawn_from_kept_sums(source: Source, line: int) -> list[Change]:
    """Call a function that keeps the sums of the last weights in place of `choice(p=weights)`.

    NumPy adds up all weights in each call and searches in the sums for uniform numbers
    (numpy/random/_generator.pyx, `Generator.choice`). The same search in sums that are kept gives
    the same numbers from the same state of the generator. To see whether the weights are still the
    same takes a pass over them, which is far cheaper.

    Args:
        source: file of the call.
        line: of the call.

    Raises:
        NotPatchableError: there is no such call, or it draws in another way.
    """
    call = _choice(source, line)
    given = _arguments(call)
    if not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("It is not called as a method of a generator.")
    after = last_import(source, source.span(call).start)
    if after is None:
        raise NotPatchableError("No import stands before it in the file.")
    numpy = module_name(source, "numpy")
    if numpy is None:
        raise NotPatchableError("The file does not import NumPy.")
    name, code = free_name(source, _NAME, _NAME), source.module.code_for_node
    size = code(given["size"]) if "size" in given else "None"
    text = f"{name}({code(call.func.value)}, {code(given['a'])}, {size}, {code(given['p'])})"
    defined = behind(source, after, ["", "", *weighted_choice(name, numpy)])
    return [defined, replaced(source.span(call), text)]


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
    if "a" not in given or isinstance(given["a"], cst.List | cst.Tuple | cst.ListComp):
        raise NotPatchableError("It draws from a list.")
    return given
