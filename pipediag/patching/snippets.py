"""Changes as code to put in by hand, where the source can't be changed safely."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.pipeline import calls_python, every
from pipediag.facts.step import lengths_to_cut
from pipediag.patching.python_calls import ROWS, ROWS_OF, WEIGHTED, lines_of
from pipediag.patching.settings import attribute
from pipediag.patching.source import is_tuned
from pipediag.session import edits
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import OTHER_OPTIMIZERS, ROW_WISE, Scalar

EACH_SHAPE = "  # traced anew for each shape of a batch, as the step needs to know it"


def snippet(session: Session, changes: Sequence[edits.Change]) -> str | None:
    """Code that does what the changes do; None where no code says it.

    Behind one operation stands first what is added, then what is moved there, then a copy to the
    device, as in capture/replay/changes.py.
    """

    def place(change: edits.Change) -> int:
        if isinstance(change, edits.Insert):
            return 2 if change.kind == "prefetch_to_device" else 0
        return 1

    written = sorted(map(edits.as_written, changes), key=place)
    moved = [find(session, each.op_id) for each in written if isinstance(each, edits.Move)]
    lines: list[str] = []
    last: dict[str, str] = {}
    for change in written:
        more = _lines(session, change)
        if more == lines:
            continue  # another call that is written alike
        lines += more
        if isinstance(change, edits.Insert | edits.Move):
            if change.after in last:
                call = lines[-1].partition("  # ")[0]
                lines[-1] = f"{call}  # after that {last[change.after]}"
            last[change.after] = lines[-1].partition("(")[0].removeprefix(".")
    if any(op is not None and op.kind == "map" and calls_python(op) for op in moved):
        lines += ["", *_with(ROWS, f"tf.py_function({ROWS}(f), ...)  # in the map")]
    return "\n".join(lines) or None


def _lines(session: Session, change: edits.Change) -> list[str]:
    match change:
        case edits.SetParameters():
            return [f".{_kind(session, change.op_id)}(..., {_arguments(change.parameters)})"]
        case edits.Remove():
            return [f"# without {_place(session, change.op_id)}"]
        case edits.Replace():
            return _replaced(session, change)
        case edits.Insert(kind=edits.CUT_PADDING):
            return _cut(session, change)
        case edits.Insert() | edits.Move():
            return [f"{_link(session, change)}  # after {_place(session, change.after)}"]
    return _around_the_pipeline(session, change)


def _around_the_pipeline(session: Session, change: edits.Change) -> list[str]:
    relaxed = "(reduce_retracing=True)" if getattr(change, "reduce_retracing", False) else ""
    lines: list[str] = []
    match change:
        case edits.SetOptions(options=options):
            given = [f"options.{attribute(name)} = {value!r}" for name, value in options.items()]
            lines = ["options = tf.data.Options()", *given]
            lines.append("dataset = dataset.with_options(options)")
        case edits.SetModel():
            lines = _model(session, change)
        case edits.RewriteCall():
            lines = _rewritten(session, change)
        case edits.CompileFunction(function=function):
            lines = [f"@tf.function{relaxed}", f"def {function.rpartition('.')[2]}(...):"]
        case edits.PredictOnBatch():
            lines = ["model.predict_on_batch(x)  # in place of model.predict(x, ...)"]
        case edits.ExtractStep():
            lines = [f"@tf.function{relaxed or EACH_SHAPE}", "def train_step(...):"]
            lines += ["    ...  # from `with tf.GradientTape()` to `apply_gradients`"]
        case edits.CompileCall(model=model, method=None):
            lines = _with("call_model", f"call_model({model}, ...)  # in place of {model}(...)")
        case edits.CompileCall(model=model, method=method):
            new, old = f'call_method({model}, "{method}", ...)', f"{model}.{method}(...)"
            lines = _with("call_method", f"{new}  # in place of {old}")
    return lines


def _with(function: str, *lines: str) -> list[str]:
    return [*lines_of(function), "", *lines]


def _link(session: Session, change: edits.Insert | edits.Move) -> str:
    if isinstance(change, edits.Move):
        given = "lambda *rows: tf.vectorized_map(lambda row: f(*row), rows)"
        return f".{_kind(session, change.op_id)}({given if change.vectorized else '...'})"
    if change.kind == "prefetch_to_device":
        device = repr(change.parameters.get("device"))
        return f".apply(tf.data.experimental.prefetch_to_device({device}))"
    return f".{change.kind}({_arguments(change.parameters)})"


def cut(change: edits.Insert, function: str = edits.CUT_PADDING) -> str:
    """Return the call of the map that cuts rows of ids with the function of that name."""
    if change.parameters:
        given = _arguments(change.parameters)
        function = f"lambda *batch: {function}(*batch, {given})"
    return f".map({function}, num_parallel_calls=tf.data.AUTOTUNE)"


def _cut(session: Session, change: edits.Insert) -> list[str]:
    loop, op = session.diagnosed_loop(), find(session, change.after)
    call = cut(change)
    if op is None or op.made_by_framework:
        # `fit` makes its own batches of arrays.
        size = (loop.batch_size if loop else None) or 32
        call = (
            f"dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch({size})"
            f"\ndataset = dataset{call}\nmodel.fit(dataset, ...)  # in place of fit(x, y, ...)"
        )
    return _with(edits.CUT_PADDING, *call.splitlines(), *_any_length(session))


def _any_length(session: Session) -> list[str]:
    return [
        f"keras.Input((None,), ...)  # in place of {length}, the length of {name}"
        for name, length in lengths_of_ids(session).items()
    ]


def lengths_of_ids(session: Session) -> dict[str, int]:
    """Return the lengths that inputs of the loop's model declare for its rows of ids, by name."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None:
        return {}
    rows = lengths_to_cut(loop.element_spec or "")
    return {name: length for name, length in loop.keras.fixed_lengths.items() if length in rows}


def _rewritten(session: Session, change: edits.RewriteCall) -> list[str]:
    lines = session.host.hot_python if session.host is not None else []
    code = [one.code or "" for one in lines if (one.file, one.line) == (change.file, change.line)]
    if any("iterrows(" in one for one in code):
        return _with(ROWS_OF, "for row in rows_of(frame):")
    return _with(WEIGHTED, "weighted_choice(rng, values, size, weights)")


def _replaced(session: Session, change: edits.Replace) -> list[str]:
    given, lines = _arguments(change.parameters), list[str]()
    match change.kind, _kind(session, change.op_id):
        case "PyDataset", _:
            lines = [f"super().__init__({given})"]
            if session.keras is not None and session.keras.source_file is None:
                # A class of Keras's own.
                lines = [f"data.{name} = {value}" for name, value in change.parameters.items()]
        case "in_chunks", _:
            lines = _with("in_chunks", "in_chunks(generator, output_signature)")
        case edits.IN_BATCHES, kind:
            values = change.parameters
            before = f".batch({values['elements']})" if values.get("first", True) else ""
            after = ".unbatch()" if values.get("last", True) else ""
            call = f"{before}.map({'rows_where(f)' if kind == 'filter' else '...'}){after}"
            place = f"{call}  # in place of {_place(session, change.op_id)}"
            lines = _with("rows_where", place) if kind == "filter" else [place]
        case edits.IN_PROCESSES, _:
            count = change.parameters.get("processes")
            called = f"tf.numpy_function(in_processes(f, {count}), [x], ...)"
            call = f".map(lambda x: {called}, num_parallel_calls={count})"
            lines = _with("in_processes", call)
        case edits.BUCKETS, _:
            call = ".apply(lambda examples: in_buckets(examples, batch_size))"
            inputs = _any_length(session) if edits.cuts_rows(change) else []
            lines = _with("in_buckets", f"{call}  # in place of .padded_batch(batch_size)", *inputs)
        case "parallel_flat_map", _:
            made = "lambda *x: tf.data.Dataset.from_tensors(x).flat_map(f)"
            lines = [f".interleave({made}, {given})"]
        case "interleave", "flat_map":
            lines = [f".interleave(..., {given})"]
    return lines


def _model(session: Session, change: edits.SetModel) -> list[str]:
    settings, lines = dict(change.settings), list[str]()
    if policy := settings.pop("dtype_policy", None):
        lines.append(f'keras.mixed_precision.set_global_policy("{policy}")')
    keras = session.keras
    others = OTHER_OPTIMIZERS.get(str(wanted := settings.get("optimizer")), {})
    other = others.get(keras.optimizer or "") if keras is not None else None
    if keras is not None and other is not None:
        del settings["optimizer"]
        averages = wanted == ROW_WISE and "use_ema" in keras.optimizer_settings
        lines += [
            f"from pipediag.optimizers import {other}",
            f"model.compile({other}(...), ...)  # with the arguments it had"
            f"{' but `use_ema`' if averages else ''}",
        ]
    return [*lines, f"model.compile(..., {_arguments(settings)})"] if settings else lines


def _arguments(values: dict[str, Scalar]) -> str:
    return ", ".join(
        f"{name}={'tf.data.AUTOTUNE' if is_tuned(name, value) else repr(value)}"
        for name, value in values.items()
    )


def _place(session: Session, op_id: str) -> str:
    op = find(session, op_id)
    if op is None:
        return "it"
    return f"the {op.kind} on line {op.line}" if op.line else f"the {op.kind}"


def _kind(session: Session, op_id: str) -> str:
    op = find(session, op_id)
    return op.kind if op is not None else "map"


def find(session: Session, op_id: str) -> Operation | None:
    """An operation of the diagnosed loop or of one that evaluates."""
    return next((op for op in every(session) if op.id == op_id), None)
