"""Python called for stacks of elements: the function that was tried, written into the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import libcst as cst

import pipediag
from pipediag.patching.arguments import argument
from pipediag.patching.names import bound, free_name, is_parameter, last_import, modules
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, insertion, replaced
from pipediag.patching.statements import behind
from pipediag.vocabulary import Scalar

_TRIED = Path(pipediag.__file__).with_name("in_chunks.py")
_NAME = "in_chunks"
_RAGGED = "in_ragged_chunks"


def source_of(parameters: Mapping[str, Scalar]) -> list[str]:
    """Return the lines of the function, called `in_chunks` whichever of the two it is.

    Args:
        parameters: `ragged` if lengths vary.
    """
    return lines_of(_RAGGED if parameters.get("ragged") else _NAME, _NAME)


def lines_of(function: str, name: str) -> list[str]:
    """Return the lines of a function that was tried, under a name."""
    _, _, rest = _TRIED.read_text(encoding="utf-8").partition(f"def {function}(")
    lines = rest.partition("\n\n\ndef ")[0].splitlines()
    return [f"def {name}({lines[0]}", *lines[1:]]


def defined(
    source: Source, lines: list[str], wanted: str, at: int, needed: Mapping[str, str]
) -> tuple[str, Change]:
    """Define a function behind the imports before an offset, and return its name in the file.

    Args:
        source: the file.
        lines: of the function.
        wanted: name that it has there.
        at: offset that it must stand before.
        needed: modules that it uses, by their names in it.

    Raises:
        NotPatchableError: there is no import, or a name that is needed means something else.
    """
    after = last_import(source, at)
    if after is None:
        raise NotPatchableError("No import stands before it in the file.")
    name = free_name(source, wanted)
    named = [line.replace(f"def {wanted}(", f"def {name}(") for line in lines]
    return name, behind(source, after, [*_imports(source, needed), "", "", *named])


def in_chunks(source: Source, call: cst.Call, parameters: Mapping[str, Scalar]) -> list[Change]:
    """Call the function in place of `from_generator`, and define it behind the file's imports.

    Raises:
        NotPatchableError: the generator takes arguments, or a name that is needed means something
            else in the file.
    """
    generator = argument(call, "generator")
    if generator is None or argument(call, "args") is not None:
        raise NotPatchableError("The generator is called with arguments.")
    needed = {"itertools": "itertools", "np": "numpy", "tf": "tensorflow"}
    start = source.span(call).start
    name, definition = defined(source, source_of(parameters), _NAME, start, needed)
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
    """Return True if the function can be called with the call's own arguments."""
    first, *others = call.args
    return all(arg.keyword is not None for arg in others) and {
        arg.keyword.value for arg in call.args if arg.keyword is not None
    } <= {"generator", "output_signature"} - ({"generator"} if first.keyword is None else set())


def _imports(source: Source, needed: Mapping[str, str]) -> list[str]:
    """Return the imports of these modules that the file has not."""
    there = modules(source)
    missing = {name: module for name, module in needed.items() if there.get(name) != module}
    for name in missing:
        if any(name in bound(source, statement) for statement in source.module.body):
            raise NotPatchableError(f"The name `{name}` is used for something else in the file.")
    return [
        f"import {module}" if module == name else f"import {module} as {name}"
        for name, module in missing.items()
    ]
