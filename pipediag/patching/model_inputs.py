"""Inputs of a Keras model whose declared length becomes `None` in the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import libcst as cst

from pipediag.patching.chains import argument
from pipediag.patching.snippets import lengths_of_ids
from pipediag.patching.source import NotPatchableError, Source, replaced
from pipediag.patching.workspace import Workspace

_DECLARE = ("Input", "InputLayer")


def with_any_length(workspace: Workspace) -> None:
    """Let inputs of the loop's model take rows of any length, where they declare one of rows."""
    for name, length in lengths_of_ids(workspace.session).items():
        source, written = _declared(workspace, name, length)
        workspace.change(source, [replaced(source.span(written), "None")])


def _declared(workspace: Workspace, name: str, length: int) -> tuple[Source, cst.BaseExpression]:
    """Return the file and the expression in which the program writes the length of an input."""
    calls = [
        (source, call)
        for source in _files(workspace)
        for call in source.calls_of(*_DECLARE)
        if not any(arg.star for arg in call.args)
    ]
    named = [one for one in calls if _name(one[1]) == name]
    found = named or [one for one in calls if _name(one[1]) is None and _may_be(one[1], length)]
    wanted = f"Give the input `{name}` of {length} the shape `(None,)`"
    if len(found) != 1:
        raise NotPatchableError(
            f"{wanted}: of the calls of `Input` that were found, {len(found)} may declare it."
        )
    ((source, call),) = found
    lengths = _lengths(call)
    if lengths is None or len(lengths) != 1:
        raise NotPatchableError(f"{wanted}: line {source.line(call)} does not write out its shape.")
    return source, lengths[0]


def _name(call: cst.Call) -> str | None:
    """Return the name that a call gives an input; None where Keras makes one, or it is computed."""
    given = argument(call, "name")
    name = given.value if given is not None else None
    return str(name.evaluated_value) if isinstance(name, cst.SimpleString) else None


def _lengths(call: cst.Call) -> list[cst.BaseExpression] | None:
    """Return the dimensions that a call writes behind the batch's; None where it writes no such."""
    shape = argument(call, "shape")
    if shape is None or not isinstance(shape.value, cst.Tuple | cst.List):
        return None
    return [one.value for one in shape.value.elements]


def _may_be(call: cst.Call, length: int) -> bool:
    lengths = _lengths(call)
    if lengths is None:
        return True
    if len(lengths) != 1:
        return False
    (one,) = lengths
    if isinstance(one, cst.Integer):
        return one.evaluated_value == length
    return not (isinstance(one, cst.Name) and one.value == "None")


def _files(workspace: Workspace) -> list[Source]:
    """Return the files of the program: those that are known, and what they import."""
    session, keras = workspace.session, workspace.keras()
    main = session.script.main_file
    waiting = [main, keras.compile_file, *(loop.file for loop in session.loops)]
    found: dict[str, Source | None] = {}
    while waiting:
        path = str(waiting.pop())
        if path not in found:
            try:
                found[path] = source = workspace.source(path)
                waiting += map(str, _imported(source, Path(main).parent if main else None))
            except NotPatchableError:  # not there, or not the program's own
                found[path] = None
    return [source for source in found.values() if source is not None]


def _imported(source: Source, main: Path | None) -> Iterator[Path]:
    """Yield where modules that a file imports would be, next to it or to the script."""
    here = Path(source.path).parent
    for node in source.all(cst.Import):
        for alias in node.names:
            yield from _places(source.code(alias.name), [here, main])
    for each in source.all(cst.ImportFrom):
        folders = [[here, *here.parents][len(each.relative) - 1]] if each.relative else [here, main]
        module = source.code(each.module) if each.module is not None else ""
        names = [] if isinstance(each.names, cst.ImportStar) else each.names
        for name in [module, *(f"{module}.{source.code(one.name)}" for one in names)]:
            yield from _places(name.strip("."), folders)


def _places(module: str, folders: Sequence[Path | None]) -> Iterator[Path]:
    for folder in filter(None, folders):
        place = folder.joinpath(*module.split("."))
        yield from (place.with_name(f"{place.name}.py"), place / "__init__.py")
