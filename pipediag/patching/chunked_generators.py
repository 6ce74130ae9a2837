"""Python called for stacks of elements: the function that was tried, written into the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import libcst as cst

import pipediag
from pipediag.patching.arguments import argument
from pipediag.patching.names import bound, free_name, is_parameter, last_import, modules
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, insertion, replaced
from pipediag.patching.statements import behind
from pipediag.vocabulary import Scalar

_WRITTEN = Path(pipediag.__file__).with_name("in_chunks.py")
_NEXT = "\n\n\ndef "
_NAME = "in_chunks"


def source_of(parameters: Mapping[str, Scalar]) -> list[str]:
    """Return the lines of the function, called `in_chunks` whichever of the two it is."""
    return lines_of("in_ragged_chunks" if parameters.get("ragged") else _NAME, _NAME)


def lines_of(function: str, name: str | None = None) -> list[str]:
    """Return the lines of a function that is written into files, under a name."""
    _, _, rest = _WRITTEN.read_text(encoding="utf-8").partition(f"def {function}(")
    lines = f"def {function}({rest.partition(_NEXT)[0]}".rstrip().splitlines()
    return [re.sub(rf"\b{function}\b", name or function, line) for line in lines]


def defined(
    source: Source, lines: list[str], wanted: str, at: int, *modules: str
) -> tuple[str, Change]:
    """Define a function behind the imports before an offset, and return its name in the file.

    The modules are those that it uses: `numpy as np`.
    """
    after = last_import(source, at)
    if after is None:
        raise NotPatchableError("No import stands before it in the file.")
    name = free_name(source, wanted)
    named = [re.sub(rf"\b{wanted}\b", name, line) for line in lines]
    return name, behind(source, after, [*_imports(source, modules), "", "", *named])


def in_chunks(source: Source, call: cst.Call, parameters: Mapping[str, Scalar]) -> list[Change]:
    """Call the function in place of `from_generator`, and define it behind the file's imports."""
    generator = argument(call, "generator")
    if generator is None or argument(call, "args") is not None:
        raise NotPatchableError("The generator is called with arguments.")
    needed = ("itertools", "numpy as np", "tensorflow as tf")
    start = source.span(call).start
    name, definition = defined(source, source_of(parameters), _NAME, start, *needed)
    if _takes_the_same(call):
        return [definition, replaced(source.span(call.func), name)]
    if not isinstance(generator.value, cst.Name | cst.Attribute | cst.Lambda):
        raise NotPatchableError("The generator is made in the call, and would be made twice.")
    # Whatever else is given: the dataset as it was made until now knows what its elements are.
    span, made = source.span(call), source.module.code_for_node(generator.value)
    return [
        definition,
        insertion(span.start, f"{name}({made}, "),
        insertion(span.end, ".element_spec)"),
    ]


def is_of_its_caller(source: Source, call: cst.Call) -> bool:
    """Return True if the generator or the signature is a parameter of the function around."""
    given = [argument(call, "generator"), argument(call, "output_signature")]
    return any(
        arg is not None and isinstance(arg.value, cst.Name) and is_parameter(source, arg.value)
        for arg in given
    )


def _takes_the_same(call: cst.Call) -> bool:
    first, *others = call.args
    return all(arg.keyword is not None for arg in others) and {
        arg.keyword.value for arg in call.args if arg.keyword is not None
    } <= {"generator", "output_signature"} - ({"generator"} if first.keyword is None else set())


def _imports(source: Source, needed: Iterable[str]) -> list[str]:
    there = modules(source)
    missing = []
    for each in needed:
        module, _, alias = each.partition(" as ")
        name = alias or module
        if there.get(name) == module:
            continue
        if any(name in bound(source, statement) for statement in source.module.body):
            raise NotPatchableError(f"The name `{name}` is used for something else in the file.")
        missing.append(f"import {each}")
    return missing
