"""The workers of a Keras PyDataset, set in the source."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from pipediag.patching.arguments import with_arguments
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, called_name


def with_workers(source: Source, name: str | None, values: Mapping[str, str]) -> list[Change]:
    """The class of that name hands them to Keras, or each call that makes one does.

    Raises:
        NotPatchableError: neither is written in this file.
    """
    classes = [n for n in source.nodes if isinstance(n, cst.ClassDef) and n.name.value == name]
    if len(classes) != 1:
        raise NotPatchableError(f"The file does not define `{name}` once.")
    made = _init(classes[0])
    call = _handed_on(source, made) if made is not None else _constructed(source, name)
    return with_arguments(source, call, values)


def _init(found: cst.ClassDef) -> cst.FunctionDef | None:
    for statement in found.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == "__init__":
            return statement
    return None


def _handed_on(source: Source, made: cst.FunctionDef) -> cst.Call:
    """The call of the base class' `__init__`."""
    calls = [
        call
        for call in source.calls.values()
        if made in source.ancestors(call)
        and source.code(call.func).startswith("super(")
        and source.code(call.func).endswith(").__init__")
    ]
    if len(calls) != 1:
        raise NotPatchableError("Its `__init__` does not call that of Keras once.")
    return calls[0]


def _constructed(source: Source, name: str | None) -> cst.Call:
    calls = [
        call
        for call in source.calls.values()
        if (called := called_name(call)) is not None and called.value == name
    ]
    if len(calls) != 1:
        raise NotPatchableError(f"`{name}` is made in {len(calls)} places.")
    return calls[0]
