"""Options of a dataset, set in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping

import libcst as cst

from pipediag.patching.arguments import argument
from pipediag.patching.chains import inserted
from pipediag.patching.names import free_name, tensorflow
from pipediag.patching.refusal import NotPatchableError
from pipediag.patching.source import Change, Source, called, insertion, replaced
from pipediag.patching.statements import (
    assigns,
    behind,
    block_of,
    receiver,
    statement_of,
)
from pipediag.vocabulary import Scalar

EXPERIMENTAL = ("optimization", "distribute", "slack")
"""What a session calls by the name it will have: TensorFlow still has `experimental_` before it."""
_DOTTED = re.compile(r"[a-z_]+(\.[a-z_]+)*")


def attribute(name: str) -> str:
    """An option's name as it is written: `experimental_optimization.map_fusion`."""
    return f"experimental_{name}" if name.partition(".")[0] in EXPERIMENTAL else name


def with_options(source: Source, last: cst.Call, options: Mapping[str, Scalar]) -> list[Change]:
    """Options of the pipeline that ends with this call: those set in the file are set otherwise."""
    changes: list[Change] = []
    missing: list[str] = []
    for name, value in options.items():
        if not _DOTTED.fullmatch(name):
            raise NotPatchableError("An option of that name can't be written.")
        written = attribute(name)
        given = _given(source, last, written)
        if given is not None:
            changes.append(replaced(source.span(given), repr(value)))
        else:
            missing.append(f"{written} = {value!r}")
    return [*changes, *_added(source, last, missing)] if missing else changes


def _given(source: Source, last: cst.Call, written: str) -> cst.BaseExpression | None:
    """Return the value that the file gives this option of the pipeline, where it does so once."""
    set_ = [
        node
        for node in source.all(cst.Assign)
        if isinstance(node.targets[0].target, cst.Attribute)
        and source.code(node.targets[0].target).endswith(f".{written}")
    ]
    if len(set_) > 1:
        raise NotPatchableError(f"The file sets `{written}` in several places.")
    if not set_:
        return None
    call = _call_with_options(source, last)
    target = source.code(set_[0].targets[0].target)
    options = argument(call, "options") or next(iter(call.args), None) if call else None
    given = options.value if options is not None else None
    if call is None or not isinstance(given, cst.Name) or target != f"{given.value}.{written}":
        raise NotPatchableError(f"The file sets `{target}`, and whether of this pipeline is open.")
    if statement_of(source, set_[0]) not in block_of(source, statement_of(source, call)):
        raise NotPatchableError(f"The file sets `{target}` in some cases only.")
    return set_[0].value


def _call_with_options(source: Source, last: cst.Call) -> cst.Call | None:
    if called(last) == "with_options":
        return last
    above = source.parent(source.parent(last) or last)
    if isinstance(above, cst.Call) and called(above) == "with_options" and receiver(above) is last:
        return above
    found = assigns(source, last)
    calls = [
        call
        for call in source.calls_of("with_options")
        if found is not None
        and isinstance(root := receiver(call), cst.Name)
        and root.value == found[1]
    ]
    return calls[0] if len(calls) == 1 else None


def _added(source: Source, last: cst.Call, lines: list[str]) -> list[Change]:
    module = tensorflow(source)
    if module is None:
        raise NotPatchableError("How the file calls TensorFlow is not known.")
    options = free_name(source, "options")
    made = [f"{options} = {module}.data.Options()", *(f"{options}.{line}" for line in lines)]
    found = assigns(source, last)
    if found is not None:
        statement, variable = found
        with_them = f"{variable} = {variable}.with_options({options})"
        return [behind(source, statement, [*made, with_them])]
    start = source.span(statement_of(source, last)).start
    text = "".join(f"{source.indent(start)}{line}{source.newline}" for line in made)
    made_before = insertion(source.line_start(start), text)
    return [made_before, *inserted(source, last, f".with_options({options})")]
