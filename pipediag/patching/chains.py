"""Arguments of a call, and operations of a chain of calls, changed in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import libcst as cst

from pipediag.patching.names import bound, names_in, needed_tensorflow
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Piece,
    Source,
    Span,
    called,
    insertion,
    replaced,
)
from pipediag.patching.statements import (
    Statement,
    assigns,
    behind,
    block_of,
    chain_up,
    condition_around,
    rebinds,
    starts_with_its_name,
    statement_of,
    whole_lines,
)

_REST_OF_LINE = re.compile(rb"[ \t]*(#[^\r\n]*)?(?=\r?\n)")

_OF_BATCHES = "batch_size drop_remainder"
_OF_FILES = "filenames compression_type buffer_size num_parallel_reads"
POSITIONS: Mapping[str, Sequence[str]] = {
    name: parameters.split()
    for name, parameters in {
        "map": "map_func num_parallel_calls deterministic",
        "flat_map": "map_func",
        "interleave": "map_func cycle_length block_length num_parallel_calls deterministic",
        "batch": f"{_OF_BATCHES} num_parallel_calls deterministic",
        "padded_batch": "batch_size padded_shapes padding_values drop_remainder",
        "ragged_batch": _OF_BATCHES,
        "rebatch": _OF_BATCHES,
        "shuffle": "buffer_size seed reshuffle_each_iteration",
        "prefetch": "buffer_size",
        "TFRecordDataset": _OF_FILES,
        "TextLineDataset": _OF_FILES,
        "FixedLengthRecordDataset": "filenames record_bytes header_bytes footer_bytes buffer_size "
        "compression_type num_parallel_reads",
        "from_generator": "generator output_types output_shapes args output_signature name",
        "Input": "shape",
        "InputLayer": "shape",
        "TensorShape": "dims",
        "set_shape": "shape",
        "ensure_shape": "x shape",
        "numpy_function": "func inp Tout",
        "py_function": "func inp Tout",
        "py_func": "func inp Tout",
        "with_options": "options",
        "predict": "x batch_size verbose steps callbacks",
        "choice": "a size replace p axis shuffle",
        "stack": "values axis name",
        "concat": "values axis name",
        "compile": "optimizer loss loss_weights metrics weighted_metrics run_eagerly "
        "steps_per_execution jit_compile auto_scale_loss",
    }.items()
}
"""Parameters of what is called, as far as they may be given by position."""


def argument(call: cst.Call, name: str) -> cst.Arg | None:
    """The argument that is given for a parameter, or None."""
    if any(arg.star for arg in call.args):
        raise NotPatchableError("Its arguments are passed with `*` or `**`.")
    order = POSITIONS.get(called(call) or "", ())
    for index, arg in enumerate(call.args):
        given = arg.keyword.value if arg.keyword else order[index] if index < len(order) else None
        if given == name:
            return arg
    return None


def needed_argument(call: cst.Call, name: str) -> cst.BaseExpression:
    """Return the value that is given for a parameter."""
    given = argument(call, name)
    if given is None:
        raise NotPatchableError(f"The arguments of `{called(call)}` are not known.")
    return given.value


def with_arguments(source: Source, call: cst.Call, values: Mapping[str, str]) -> list[Change]:
    """Set parameters of a call to what these texts say."""
    changes = []
    added = []
    for name, text in values.items():
        given = argument(call, name)
        if given is not None:
            changes.append(replaced(source.span(given.value), text))
        else:
            added.append(f"{name}={text}")
    return [*changes, *_added(source, call, added)]


def _added(source: Source, call: cst.Call, texts: Sequence[str]) -> list[Change]:
    if not texts:
        return []
    if not call.args:
        return [insertion(source.span(call).end - 1, ", ".join(texts))]
    last = call.args[-1]
    span = source.span(last)
    if source.data[source.line_start(span.start) : span.start].strip():
        return [insertion(span.end, "".join(f", {text}" for text in texts))]
    return [_on_own_lines(source, last, span, texts)]


def _on_own_lines(source: Source, last: cst.Arg, span: Span, texts: Sequence[str]) -> Change:
    indent, newline = source.indent(span.start), source.newline
    comma = source.data.find(b",", span.end) + 1
    if isinstance(last.comma, cst.Comma) and _REST_OF_LINE.match(source.data, comma):
        lines = "".join(f"{indent}{text},{newline}" for text in texts)
        return insertion(source.next_line(comma), lines)
    return insertion(span.end, "".join(f",{newline}{indent}{text}" for text in texts))


def inserted(source: Source, after: cst.Call, call: str) -> list[Change]:
    """A new operation behind a call: `.cache()`, or a line of its own in a list of such lines."""
    found = assigns(source, after)
    if found is not None and starts_with_its_name(source, after):
        statement, name = found
        return [behind(source, statement, [f"{name} = {name}{call}"])]
    return [_appended(source, after, [call.encode()])]


def _appended(source: Source, after: cst.Call, pieces: list[Piece]) -> Change:
    """A link of a chain behind a call, on a line of its own where the chain is written so."""
    end = source.span(after).end
    blanks = _blanks(source, after)
    if "\n" not in blanks:
        return Change(Span(end, end), tuple(pieces))
    if "\\" not in blanks:
        rest = _REST_OF_LINE.match(source.data, end)
        end = end if rest is None else rest.end()
        blanks = source.newline + blanks.rpartition("\n")[2]
    return Change(Span(end, end), (blanks.encode(), *pieces))


def _blanks(source: Source, call: cst.Call) -> str:
    """Return what stands before the dots of the chain that the call is a link of, with its line's
    end; nothing where they follow what they are called on."""
    for each in (call.func, source.parent(call)):
        if isinstance(each, cst.Attribute):
            dot = source.data.rfind(b".", 0, source.span(each.attr).start)
            start = source.line_start(dot)
            indent = source.data[start:dot]
            if not indent.strip():
                above = source.data[:start].rstrip(b"\r\n")
                ends = "\\" if above.endswith(b"\\") else ""
                return f"{' ' if ends else ''}{ends}{source.newline}{indent.decode()}"
    return ""


def moved(source: Source, call: cst.Call, after: cst.Call) -> list[Change]:
    """An operation with its arguments put behind another call of its chain."""
    down = source.span(after).end > source.span(call).end
    chain_up(source, *((after, call) if down else (call, after)))
    there = statement_of(source, after)
    here: Statement = condition_around(source, call) or statement_of(source, call)
    if here is not there:
        _check_names(source, call, here, there)
    alone, target = rebinds(source, call), assigns(source, after)
    of_one_name = alone and target and alone[1] == target[1]
    if isinstance(here, cst.If) and not of_one_name:
        raise NotPatchableError("The condition around it would have to move into the chain.")
    if of_one_name and (isinstance(here, cst.If) or starts_with_its_name(source, after)):
        lines = whole_lines(source, here)
        at = source.next_line(source.span(there).end)
        if not source.data[:at].endswith(b"\n") or not source.data[: lines.end].endswith(b"\n"):
            raise NotPatchableError("The file does not end with a newline.")
        return [Change(lines), Change(Span(at, at), (lines,))]
    if alone and len(block_of(source, here)) == 1:
        raise NotPatchableError("Its block would be left empty.")
    link = _link(source, call)
    text = Span(source.data.find(b".", link.start), link.end)
    if source.data[link.start : text.start].strip(b" \t\r\n\\"):
        raise NotPatchableError("There is a comment within the chain.")
    gone = whole_lines(source, alone[0]) if alone else link
    return [Change(gone), _appended(source, after, [text])]


def _link(source: Source, call: cst.Call) -> Span:
    """Return a method's call without what it is called on, but with the blanks before its dot."""
    if not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("It is not called as a dataset's method.")
    dot = source.module.code_for_node(call.func.dot).encode()
    return Span(source.span(call.func.attr).start - len(dot), source.span(call).end)


def _check_names(source: Source, call: cst.Call, here: Statement, there: Statement) -> None:
    """Raise NotPatchableError where a name in the call's arguments changes between two places."""
    block = block_of(source, here)
    if there not in block:
        raise NotPatchableError("The two calls are not in the same block.")
    first, last = sorted((block.index(here), block.index(there)))
    given = set().union(*(bound(source, each) for each in block[first : last + 1]))
    parts = (*call.args, *((here.test,) if isinstance(here, cst.If) else ()))
    used = set().union(*(names_in(source, part) for part in parts))
    for name in sorted(given & used)[:1]:
        raise NotPatchableError(f"`{name}` is assigned between the two places.")


def renamed(source: Source, call: cst.Call, kind: str, values: Mapping[str, str]) -> list[Change]:
    """Another operation with the same arguments, and some set."""
    if not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("It is not called as a method of a dataset.")
    name = source.span(call.func.attr)
    return [replaced(name, kind), *with_arguments(source, call, values)]


def called_by_readers(source: Source, call: cst.Call, values: Mapping[str, str]) -> list[Change]:
    """An interleave whose function is called by those who read, several at a time."""
    module, first = needed_tensorflow(source), call.args[0] if call.args else None
    if first is None or first.star or (first.keyword and first.keyword.value != "map_func"):
        raise NotPatchableError("Its function is not its first argument.")
    value = source.span(first.value)
    opening = f"lambda *element: {module}.data.Dataset.from_tensors(element).flat_map("
    return [
        *renamed(source, call, "interleave", {}),
        Change(value, (opening.encode(), value, b")")),
        *with_arguments(source, call, values),
    ]
