"""Changes as code to put in by hand, where the source can't be changed safely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipediag.patching.dataset_options import attribute
from pipediag.patching.helper_made import called_otherwise
from pipediag.patching.model_code import sampled_softmax, sgd_for_tables
from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Insert,
    Move,
    MoveLayers,
    Remove,
    Replace,
    SetModel,
    SetOptions,
    SetParameters,
    SkipCallback,
    as_written,
)
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, Scalar


def snippet(session: Session, changes: Sequence[Change]) -> str | None:
    """Code that does what the changes do; None where no code says it."""
    written = [as_written(change) for change in changes]
    of_helpers = called_otherwise(every(session), written)
    if of_helpers is not None:
        return "\n".join(of_helpers) or None
    lines: list[str] = []
    above: dict[str, str] = {}
    for change in _as_they_follow(session, written):
        last = above.get(change.after) if isinstance(change, Insert | Move) else None
        lines += _lines(session, change) if last is None else [_behind(session, change, last)]
        if isinstance(change, Insert | Move):
            above[change.after] = _kind_of(session, change)
    return "\n".join(lines) or None


def _as_they_follow(session: Session, changes: Sequence[Change]) -> list[Change]:
    """The changes, those that place an operation as they follow one another in what was measured.

    Behind the same operation stands first what is added, then what is moved there, then a
    prefetch: the passes of capture/replay/changes.py. Other changes stay where they are.
    """
    order = {op.id: n for n, op in enumerate(every(session))}
    moves = {change.op_id: change.after for change in changes if isinstance(change, Move)}

    def at(op_id: str, moved: int = 0) -> tuple[int, ...]:
        here = order.get(op_id, -1)
        # Two that move behind each other are no trial's; they only must not go round for ever.
        if op_id not in moves or moved > len(moves):
            return (here,)
        return *at(moves[op_id], moved + 1), 1, here

    def place(change: Insert | Move) -> tuple[int, ...]:
        if isinstance(change, Move):
            return at(change.op_id)
        return *at(change.after), 2 if change.kind.startswith("prefetch") else 0

    placed = iter(sorted((one for one in changes if isinstance(one, Insert | Move)), key=place))
    return [next(placed) if isinstance(one, Insert | Move) else one for one in changes]


def _behind(session: Session, change: Change, last: str) -> str:
    """The line of a change whose place is behind another change's."""
    (line,) = _lines(session, change)
    return f"{line.partition('  # ')[0]}  # behind that {last}"


def _kind_of(session: Session, change: Insert | Move) -> str:
    return change.kind if isinstance(change, Insert) else _kind(session, change.op_id)


def _lines(session: Session, change: Change) -> list[str]:
    for kind, lines in _BY_KIND:
        if isinstance(change, kind):
            return lines(session, change)
    raise TypeError(f"{type(change).__name__} is no kind of change that is known.")


def _set(session: Session, change: SetParameters) -> list[str]:
    return [f".{_kind(session, change.op_id)}(..., {_arguments(change.parameters)})"]


def _inserted(session: Session, change: Insert) -> list[str]:
    behind = _place(session, change.after)
    if change.kind == "prefetch_to_device":
        device = repr(change.parameters.get("device"))
        return [f".apply(tf.data.experimental.prefetch_to_device({device}))  # behind {behind}"]
    return [f".{change.kind}({_arguments(change.parameters)})  # behind {behind}"]


def _moved(session: Session, change: Move) -> list[str]:
    return [f".{_kind(session, change.op_id)}(...)  # behind {_place(session, change.after)}"]


def _removed(session: Session, change: Remove) -> list[str]:
    return [f"# without {_place(session, change.op_id)}"]


def _skipped(_session: Session, _change: SkipCallback) -> list[str]:
    return ["if batch % 100:", "    return"]


def _layers(session: Session, change: MoveLayers) -> list[str]:
    place = _place(session, change.after)
    kept = "" if change.kept is None else ", with a cache behind it"
    return [f"# layers {', '.join(change.layers)} in a map behind {place}{kept}"]


def _replaced(session: Session, change: Replace) -> list[str]:
    if change.kind == "PyDataset":
        return [f"super().__init__({_arguments(change.parameters)})"]
    if change.kind == "parallel_flat_map":
        made = "lambda *x: tf.data.Dataset.from_tensors(x).flat_map(f)"
        return [f".interleave({made}, {_arguments(change.parameters)})"]
    if change.kind == "bucket_by_sequence_length" or _kind(session, change.op_id) != "flat_map":
        return []
    return [f".{change.kind}(..., {_arguments(change.parameters)})"]


def _options(_session: Session, change: SetOptions) -> list[str]:
    lines = [f"options.{attribute(name)} = {value!r}" for name, value in change.options.items()]
    return ["options = tf.data.Options()", *lines, "dataset = dataset.with_options(options)"]


def _model(session: Session, change: SetModel) -> list[str]:
    settings = dict(change.settings)
    policy = settings.pop("dtype_policy", None)
    lines = (
        [f'keras.mixed_precision.set_global_policy("{policy}")'] if isinstance(policy, str) else []
    )
    for name, written in _IN_THE_MODEL.items():
        lines += written if settings.pop(name, False) else []
    lines += _drawn(session, settings.pop("sampled_softmax", None))
    if settings.get("optimizer") == "sgd_for_tables":
        del settings["optimizer"]
        lines += sgd_for_tables(_keras(session))
    row_wise = _row_wise(session) if settings.get("optimizer") == "row_wise" else None
    if row_wise is not None:
        del settings["optimizer"]
        lines += [
            f"from pipediag.optimizers import {row_wise}",
            f"model.compile({row_wise}(...), ...)  # with the arguments that it had",
        ]
    return [*lines, f"model.compile(..., {_arguments(settings)})"] if settings else lines


_IN_THE_MODEL = {
    "table_terms_left_out": [
        "keras.layers.Embedding(...)  # without its embeddings_regularizer, embeddings_constraint"
    ],
}
"""Settings that are no arguments of `compile`, as code."""


def _drawn(session: Session, drawn: Scalar) -> list[str]:
    loop = session.diagnosed_loop()
    softmax = next(iter(loop.softmaxes), None) if loop else None
    return sampled_softmax(softmax, drawn) if softmax and isinstance(drawn, int) else []


def _row_wise(session: Session) -> str | None:
    """The row-wise optimizer in place of the diagnosed loop's own."""
    keras = _keras(session)
    return ROW_WISE_OPTIMIZERS.get(keras.optimizer or "") if keras else None


def _keras(session: Session) -> KerasUse | None:
    loop = session.diagnosed_loop()
    return loop.keras if loop else None


def _arguments(values: dict[str, Scalar]) -> str:
    return ", ".join(f"{name}={_value(name, value)}" for name, value in values.items())


def _value(name: str, value: Scalar) -> str:
    tuned = value == AUTOTUNE and (name.startswith("num_parallel") or name == "buffer_size")
    return "tf.data.AUTOTUNE" if tuned else repr(value)


def _place(session: Session, op_id: str) -> str:
    op = find(session, op_id)
    if op is None:
        return "it"
    return f"the {op.kind} in line {op.line}" if op.line else f"the {op.kind}"


def _kind(session: Session, op_id: str) -> str:
    op = find(session, op_id)
    return op.kind if op is not None else "map"


def find(session: Session, op_id: str) -> Operation | None:
    """An operation of the diagnosed loop or of one that evaluates."""
    return next((op for op in every(session) if op.id == op_id), None)


def every(session: Session) -> list[Operation]:
    """The operations of all loops whose pipelines are known, each once."""
    pipelines = [session.pipeline, *(loop.pipeline for loop in session.loops)]
    ops = {op.id: op for pipeline in pipelines if pipeline is not None for op in pipeline.ops}
    return list(ops.values())


_BY_KIND: tuple[tuple[type[Change], Callable[[Session, Any], list[str]]], ...] = (
    (SetParameters, _set),
    (Insert, _inserted),
    (Move, _moved),
    (Remove, _removed),
    (Replace, _replaced),
    (SetOptions, _options),
    (SetModel, _model),
    (SkipCallback, _skipped),
    (MoveLayers, _layers),
)
