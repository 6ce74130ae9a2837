"""Arguments of a call, set in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import libcst as cst

from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    Span,
    called,
    insertion,
    replaced,
)

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
        "stack": "values axis name",
        "concat": "values axis name",
        "compile": "optimizer loss loss_weights metrics weighted_metrics run_eagerly "
        "steps_per_execution jit_compile auto_scale_loss",
    }.items()
}
"""Parameters of what is called, as far as they may be given by position."""

_REST_OF_LINE = re.compile(rb"[ \t]*(#[^\r\n]*)?\r?\n")


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
