"""Operations of the pipeline as rows that terminal and page show; a tf.data service in words."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.reporters.words.labels import SourceNames
from pipediag.reporters.words.quantities import NO_BREAK, NOTHING, number
from pipediag.session.pipeline import Operation, Pipeline


@dataclass(frozen=True)
class PipelineRow:
    op: Operation
    title: str
    """The call as written: `map(parse)`."""
    place: str
    share_percent: float | None
    """Share of the self time of all operations."""
    bottleneck: bool
    notes: list[str]
    """Changes by TensorFlow or Keras: inserted, fused, removed."""
    reads_from: list[str]
    """Titles of its inputs, where they are not simply the row before."""


def pipeline_rows(pipeline: Pipeline, places: SourceNames) -> list[PipelineRow]:
    """Return one row for each operation, in the order of the data."""
    titles = {op.id: operation_title(op) for op in pipeline.ops}
    total = sum(op.self_ms_per_step or 0.0 for op in pipeline.ops)
    rows: list[PipelineRow] = []
    previous: list[str] = []
    for op in pipeline.ops:
        own = op.self_ms_per_step
        rows.append(
            PipelineRow(
                op=op,
                title=titles[op.id],
                place=places.at(op.file, op.line),
                share_percent=100.0 * own / total if own is not None and total > 0 else None,
                bottleneck=op.id in (pipeline.bottleneck_op_id, *pipeline.tied_op_ids),
                notes=_notes(op, titles),
                reads_from=[]
                if op.inserted_by_tensorflow or list(op.parent_ids) == previous
                else [titles.get(parent, parent) for parent in op.parent_ids],
            )
        )
        # As written: what TensorFlow inserts stands behind what it reads from.
        previous = previous if op.inserted_by_tensorflow else [op.id]
    return rows


def operation_title(op: Operation) -> str:
    """Return the call as written, with the function it was given: `map(parse)`.

    A function within others is called by its own name: Keras' have names of eighty letters.
    """
    if op.function is None:
        return op.kind
    name = op.function.name.rpartition("<locals>.")[-1]
    return f"{op.kind}({'lambda' if '<lambda>' in name else name})"


def parallel_calls(op: Operation) -> str:
    """Return how many calls run side by side, and who decided that."""
    if op.parallelism is None:
        return "tuned" if op.autotuned and op.buffer_size is None else NOTHING
    if op.autotuned:
        return f"{op.parallelism}, tuned"
    return "1, serial" if op.parallelism == 1 else f"{op.parallelism}, fixed"


def buffer_fill(op: Operation) -> str:
    """Return how many elements lay in the buffer, of how many it has room for."""
    if op.buffer_size is None and op.buffered_elements is None:
        return NOTHING
    if op.buffer_size is None:
        return f"{number(op.buffered_elements)}{NO_BREAK}ready"
    if op.buffered_elements is None:
        return f"{number(op.buffer_size)}{NO_BREAK}slots"
    return f"{number(op.buffered_elements)}{NO_BREAK}of{NO_BREAK}{number(op.buffer_size)}"


def _notes(op: Operation, titles: dict[str, str]) -> list[str]:
    notes: list[str] = []
    if op.inserted_by_tensorflow:
        notes.append("inserted by TensorFlow")
    if op.helper is not None:
        notes.append(f"made by {op.helper}")
    elif op.made_by_framework:
        notes.append("made by the framework")
    if op.fused_into is not None:
        notes.append(f"fused into {titles.get(op.fused_into, op.fused_into)}, counted there")
    if op.fused_from:
        parts = " + ".join(titles.get(part, part) for part in op.fused_from)
        notes.append(f"fused from {parts}")
    if op.inside_function_of is not None:
        outer = titles.get(op.inside_function_of, op.inside_function_of)
        notes.append(f"runs inside {outer}")
    return notes
