"""Batches without padding to one length: their shapes, and inputs of the model that declare it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import libcst as cst

from pipediag.patching.chains import argument, inserted, needed_argument
from pipediag.patching.python_calls import defined
from pipediag.patching.snippets import CUT, lengths_of_ids
from pipediag.patching.source import Change, NotPatchableError, Source, Span, called
from pipediag.patching.workspace import Workspace
from pipediag.session.edits import CUT_PADDING


def padding_cut(source: Source, call: cst.Call) -> list[Change]:
    """Cut the padding of batches behind the call that makes them."""
    name, definition = defined(source, CUT_PADDING, source.span(call).start)
    return [*definition, *inserted(source, call, CUT.replace(CUT_PADDING, name))]


def in_buckets(source: Source, call: cst.Call) -> list[Change]:
    """Batch examples of similar length with the arguments of a `padded_batch`."""
    if not isinstance(call.func, cst.Attribute) or called(call) != "padded_batch":
        raise NotPatchableError("It is not called as the method `padded_batch` of a dataset.")
    needed_argument(call, "batch_size")
    if any(arg.keyword is None for arg in call.args[1:]):
        raise NotPatchableError("More than its batch size is given by position.")
    name, definition = defined(source, "in_buckets", source.span(call).start)
    method, opened = source.span(call.func.attr), source.free_name("examples")
    given = Span(source.span(call.args[0]).start, source.span(call.args[-1]).end)
    return [
        *definition,
        Change.replace(method, "apply"),
        Change.insert(given.start, f"lambda {opened}: {name}({opened}, "),
        Change.insert(given.end, ")"),
    ]


def with_any_length(workspace: Workspace) -> None:
    """Let inputs of the loop's model take rows of any length, where they declare one of rows."""
    for name, length in lengths_of_ids(workspace.session).items():
        source, written = _declared(workspace, name, length)
        workspace.change(source, [Change.replace(source.span(written), "None")])


def _declared(workspace: Workspace, name: str, length: int) -> tuple[Source, cst.BaseExpression]:
    """Return the file and the expression in which the program writes the length of an input."""
    calls = [
        (source, call)
        for source in _files(workspace)
        for call in source.calls_of("Input", "InputLayer")
        if not any(arg.star for arg in call.args)
    ]
    found = [one for one in calls if _name(one[1]) == name]
    found = found or [one for one in calls if _name(one[1]) is None and _may_be(one[1], length)]
    wanted = f"Give the input `{name}` of {length} the shape `(None,)`"
    if len(found) != 1:
        raise NotPatchableError(
            f"{wanted}: of the calls of `Input` that were found, {len(found)} may declare it."
        )
    ((source, call),) = found
    shape = _shape(call)
    if shape is None or len(shape) != 1:
        raise NotPatchableError(f"{wanted}: line {source.line(call)} does not write out its shape.")
    return source, shape[0]


def _name(call: cst.Call) -> str | None:
    """Return the name that a call gives an input; None where Keras makes one, or it is computed."""
    name = argument(call, "name")
    return str(name.evaluated_value) if isinstance(name, cst.SimpleString) else None


def _shape(call: cst.Call) -> list[cst.BaseExpression] | None:
    """Return the dimensions that a call writes behind the batch's; None where it writes no such."""
    match argument(call, "shape"):
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [one.value for one in elements]
    return None


def _may_be(call: cst.Call, length: int) -> bool:
    shape = _shape(call)
    if shape is None or len(shape) != 1:
        return shape is None
    if isinstance(shape[0], cst.Integer):
        return shape[0].evaluated_value == length
    return not (isinstance(shape[0], cst.Name) and shape[0].value == "None")


def _files(workspace: Workspace) -> list[Source]:
    """Return the files of the program: those that are known, and what they import."""
    main = workspace.session.script.main_file
    waiting = [main, workspace.keras().compile_file, *(one.file for one in workspace.session.loops)]
    found: dict[str, Source | None] = {}
    while waiting:
        path = str(waiting.pop())
        if path not in found:
            found[path] = None
            with suppress(NotPatchableError):  # not there, or not the program's own
                found[path] = source = workspace.source(path)
                waiting += map(str, _imported(source, Path(main).parent if main else None))
    return [source for source in found.values() if source is not None]


def _imported(source: Source, main: Path | None) -> Iterator[Path]:
    """Yield where modules that a file imports would be, next to it or to the script."""
    here = Path(source.path).parent
    for node in source.nodes:
        folders, names = [here, main], list[str]()
        if isinstance(node, cst.Import):
            names = [source.code(alias.name) for alias in node.names]
        elif isinstance(node, cst.ImportFrom):
            if node.relative:
                folders = [[here, *here.parents][len(node.relative) - 1]]
            module = source.code(node.module) if node.module is not None else ""
            aliases = [] if isinstance(node.names, cst.ImportStar) else node.names
            names = [module, *(f"{module}.{source.code(one.name)}" for one in aliases)]
        for folder in filter(None, folders):
            for name in names:
                place = folder.joinpath(*name.strip(".").split("."))
                yield from (place.with_name(f"{place.name}.py"), place / "__init__.py")
