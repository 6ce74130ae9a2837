"""Changes as code to put in by hand, where the source can't be changed safely."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.pipeline import (
    FROM_FILES_OR_ARRAYS,
    READ_CONFIG,
    TENSORFLOW_DATASETS,
    argument_of,
    calls_python,
)
from pipediag.patching.batch_forms import ROWS
from pipediag.patching.chunked_generators import lines_of, source_of
from pipediag.patching.dataset_options import attribute
from pipediag.patching.names import is_tuned
from pipediag.patching.slow_calls import call_model, rows_of, weighted_choice
from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    CompileCall,
    CompileFunction,
    Insert,
    Move,
    MoveLayers,
    PredictOnBatch,
    Remove,
    Replace,
    RewriteCall,
    SetModel,
    SetOptions,
    SetParameters,
    SkipCallback,
    as_written,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import KerasUse, Softmax
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, Scalar

_SAMPLED = """\
class SampledSoftmax(keras.Model):  # for labels as {labels}; without metrics, weights and masks
    def __init__(self, vectors, classes, drawn):
        super().__init__()
        self.vectors, self.classes, self.drawn = vectors, classes, drawn
        shape = (classes, vectors.output_shape[-1])
        self.rows = self.add_weight(shape=shape, name="rows")
        self.biases = self.add_weight(shape=(classes,), initializer="zeros", name="biases")

    def call(self, inputs, training=None):
        vectors = self.vectors(inputs, training=training)
        if training:
            return vectors
        return tf.tensordot(vectors, self.rows.value, [[-1], [1]]) + self.biases.value

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        given = tf.reshape(y_pred, (-1, y_pred.shape[-1]))
        labels = tf.cast(tf.reshape({ids}, (-1,)), "int64")
        if not training:  # logits of all classes
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, given)
        else:
            rows, biases = self.rows.value, self.biases.value
            losses = tf.nn.sampled_softmax_loss(
                rows, biases, labels[:, None], given, self.drawn, self.classes
            )
        return tf.reduce_mean(losses) + sum(self.losses)

# `vectors` is your model without its last layer.
model = SampledSoftmax(vectors, {classes}, {drawn})
model.compile(optimizer=...)  # without a loss"""

_SGD_FOR_TABLES = """\
class SgdForTables({optimizer}):{scaled}
    def update_step(self, gradient, variable, learning_rate):
        if "embeddings" not in variable.name:
            return super().update_step(gradient, variable, learning_rate)
        rate = keras.ops.cast(0.1, variable.dtype)  # to be found anew
        self.assign_sub(variable, keras.ops.multiply(gradient, rate))

optimizer = SgdForTables(...)  # with its arguments{but_for}
{decay}model.compile(optimizer, ...{unscaled})  # slots of the tables stay allocated"""
_NO_DECAY = 'optimizer.exclude_from_weight_decay(var_names=["embeddings"])\n'
_WITHOUT_TERMS = (
    "keras.layers.Embedding(...)  # without its embeddings_regularizer, embeddings_constraint"
)
_OVER_TABLES = ("use_ema", "global_clipnorm", "gradient_accumulation_steps")
"""Arguments that let any optimizer pass over whole tables, however it updates them."""
_DECAYS = "AdamW"
"""Without being told to."""
_SCALED = "LossScaleOptimizer"
_OF_KERAS = frozenset(
    "Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb Lion Muon Nadam RMSprop SGD "
    "ScheduleFreeAdamW".split()
)
"""The classes in `keras.optimizers` of Keras 3.15."""


def sampled_softmax(softmax: Softmax, drawn: int) -> list[str]:
    """A model in the place of one that ends in that softmax; docs/embeddings.md explains it."""
    one_hot = softmax.labels == "dense"
    code = _SAMPLED.format(
        labels="one-hot rows" if one_hot else "integers",
        ids="tf.argmax(y, -1)" if one_hot else "y",
        classes=softmax.classes,
        drawn=drawn,
    )
    return code.splitlines()


def sgd_for_tables(keras: KerasUse | None) -> list[str]:
    """An optimizer in the place of that with which a model of Keras is compiled."""
    own = keras.optimizer if keras else None
    settings = keras.optimizer_settings if keras else {}
    left_out = ", ".join(f"`{name}`" for name in _OVER_TABLES if name in settings)
    scaled = own == _SCALED
    code = _SGD_FOR_TABLES.format(
        # What scales the loss is around another one, whose name is not known.
        optimizer=_class("Adam" if own is None or scaled else own),
        scaled="  # or the one whose loss was scaled" if scaled else "",
        but_for=f", but for {left_out}, which the trial kept for all but the tables"
        if left_out
        else "",
        decay=_NO_DECAY if own == _DECAYS or "weight_decay" in settings else "",
        unscaled=", auto_scale_loss=False" if scaled else "",
    )
    return code.splitlines()


def _class(name: str) -> str:
    """Return an optimizer's class as an expression: of Keras, of pipediag, or of the script."""
    if name in _OF_KERAS:
        return f"keras.optimizers.{name}"
    return f"pipediag.optimizers.{name}" if name in ROW_WISE_OPTIMIZERS.values() else name


def called_otherwise(ops: Sequence[Operation], changes: Sequence[Change]) -> list[str] | None:
    """The lines that do it; None where the helper's call can't be all that changes."""
    by_id = {op.id: op for op in ops}
    for change in changes:
        op = by_id.get(change.after) if isinstance(change, Insert) else None
        if isinstance(change, Insert) and op is not None and change.kind == "cache":
            if op.helper in TENSORFLOW_DATASETS and len(changes) == 1:
                return [f"{op.helper}(...).cache()"]
            return _cached(ops, op) if op.helper in FROM_FILES_OR_ARRAYS else None
    lines = [_with_arguments(by_id, change) for change in changes]
    return None if None in lines else [line for line in lines if line is not None]


def _cached(ops: Sequence[Operation], op: Operation) -> list[str]:
    """The elements are kept as single examples, and mixed and batched behind that."""
    made = [one for one in ops if (one.helper, one.line) == (op.helper, op.line)]
    shuffled = any(one.kind == "shuffle" for one in made)
    sizes = (one.parameters.get("batch_size") for one in made)
    size = next((size for size in sizes if isinstance(size, int)), None)
    calls = [".cache()"]
    calls += [".shuffle(dataset.cardinality())"] if shuffled else []
    calls += [f".batch({size})"] if size is not None else []
    return [
        f"dataset = keras.utils.{op.helper}(..., batch_size=None, shuffle=False)",
        f"dataset = dataset{''.join(calls)}.prefetch(tf.data.AUTOTUNE)",
    ]


def _with_arguments(by_id: dict[str, Operation], change: Change) -> str | None:
    op = by_id.get(change.op_id) if isinstance(change, SetParameters) else None
    if not isinstance(change, SetParameters) or op is None or op.helper is None:
        return None
    given = [
        f"{name}={'tf.data.AUTOTUNE' if value == AUTOTUNE else repr(value)}"
        for parameter, value in change.parameters.items()
        if (name := argument_of(op, parameter)) is not None
    ]
    configured = [one.removeprefix(READ_CONFIG) for one in given if one.startswith(READ_CONFIG)]
    given = [one for one in given if not one.startswith(READ_CONFIG)]
    if configured:
        given.append(f"read_config=tfds.ReadConfig({', '.join(configured)})")
    return f"{op.helper}(..., {', '.join(given)})" if given else None


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
        lines += _lines(session, change)
        if last is not None:
            lines[-1] = f"{lines[-1].partition('  # ')[0]}  # behind that {last}"
        if isinstance(change, Insert | Move):
            above[change.after] = (
                change.kind if isinstance(change, Insert) else _kind(session, change.op_id)
            )
    lines += _by_row(session, written)
    return "\n".join(lines) or None


def _by_row(session: Session, changes: Sequence[Change]) -> list[str]:
    """Return how Python is called for the rows of a batch, where a map of it moves behind one."""
    moved = [find(session, each.op_id) for each in changes if isinstance(each, Move)]
    if not any(op is not None and op.kind == "map" and calls_python(op) for op in moved):
        return []
    return ["", *lines_of(ROWS, ROWS), "", f"tf.py_function({ROWS}(f), ...)  # in the map"]


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


def _lines(session: Session, change: Change) -> list[str]:
    match change:
        case SetOptions():
            lines = _options(change)
        case SetModel():
            lines = _model(session, change)
        case RewriteCall():
            lines = _rewritten(session, change)
        case CompileFunction(function=function):
            given = "(reduce_retracing=True)" if change.reduce_retracing else ""
            lines = [f"@tf.function{given}", f"def {function.rpartition('.')[2]}(...):"]
        case PredictOnBatch():
            lines = ["model.predict_on_batch(x)  # in place of model.predict(x, ...)"]
        case CompileCall(model=model):
            lines = [*call_model(), "", f"call_model({model}, ...)  # in place of {model}(...)"]
        case SkipCallback():
            lines = ["if batch % 100:", "    return"]
        case _:
            lines = _of_pipeline(session, change)
    return lines


def _of_pipeline(
    session: Session, change: SetParameters | Insert | Move | Remove | Replace | MoveLayers
) -> list[str]:
    match change:
        case SetParameters():
            return [f".{_kind(session, change.op_id)}(..., {_arguments(change.parameters)})"]
        case Insert(kind="prefetch_to_device"):
            device = repr(change.parameters.get("device"))
            call = f".apply(tf.data.experimental.prefetch_to_device({device}))"
        case Insert():
            call = f".{change.kind}({_arguments(change.parameters)})"
        case Move():
            given = "lambda *rows: tf.vectorized_map(lambda row: f(*row), rows)"
            call = f".{_kind(session, change.op_id)}({given if change.vectorized else '...'})"
        case Remove():
            return [f"# without {_place(session, change.op_id)}"]
        case Replace():
            return _replaced(session, change)
        case MoveLayers():
            place = _place(session, change.after)
            kept = "" if change.kept is None else ", with a cache behind it"
            return [f"# layers {', '.join(change.layers)} in a map behind {place}{kept}"]
    return [f"{call}  # behind {_place(session, change.after)}"]


def _rewritten(session: Session, change: RewriteCall) -> list[str]:
    lines = session.host.hot_python if session.host is not None else []
    code = [one.code or "" for one in lines if (one.file, one.line) == (change.file, change.line)]
    if any("iterrows(" in one for one in code):
        return [*rows_of(), "", "for row in rows_of(frame):"]
    return [*weighted_choice(), "", "weighted_choice(rng, values, size, weights)"]


def _replaced(session: Session, change: Replace) -> list[str]:
    given = _arguments(change.parameters)
    match change.kind, _kind(session, change.op_id):
        case "PyDataset", _:
            return [f"super().__init__({given})"]
        case "in_chunks", _:
            return [*source_of(change.parameters), "", "in_chunks(generator, output_signature)"]
        case "parallel_flat_map", _:
            made = "lambda *x: tf.data.Dataset.from_tensors(x).flat_map(f)"
            return [f".interleave({made}, {given})"]
        case "interleave", "flat_map":
            return [f".interleave(..., {given})"]
    return []


def _options(change: SetOptions) -> list[str]:
    lines = [f"options.{attribute(name)} = {value!r}" for name, value in change.options.items()]
    return ["options = tf.data.Options()", *lines, "dataset = dataset.with_options(options)"]


def _model(session: Session, change: SetModel) -> list[str]:
    settings = dict(change.settings)
    policy = settings.pop("dtype_policy", None)
    lines = (
        [f'keras.mixed_precision.set_global_policy("{policy}")'] if isinstance(policy, str) else []
    )
    if settings.pop("table_terms_left_out", False):
        lines.append(_WITHOUT_TERMS)
    loop = session.diagnosed_loop()
    drawn, softmaxes = settings.pop("sampled_softmax", None), loop.softmaxes if loop else []
    if isinstance(drawn, int) and softmaxes:
        lines += sampled_softmax(softmaxes[0], drawn)
    if settings.get("optimizer") == "sgd_for_tables":
        del settings["optimizer"]
        lines += sgd_for_tables(loop.keras if loop else None)
    own = (loop.keras.optimizer if loop and loop.keras else None) or ""
    row_wise = ROW_WISE_OPTIMIZERS.get(own)
    if settings.get("optimizer") == "row_wise" and row_wise is not None:
        del settings["optimizer"]
        lines += [
            f"from pipediag.optimizers import {row_wise}",
            f"model.compile({row_wise}(...), ...)  # with the arguments that it had",
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
