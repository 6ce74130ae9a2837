"""Edits of a Keras model that several rules recommend."""

from __future__ import annotations

from pipediag.facts.machine import available_bytes
from pipediag.facts.python_callables import per_batch_callbacks
from pipediag.facts.step import keras_3, on_torch
from pipediag.session.edits import Edit, SetModel
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, EffectOnResults, Scalar

_ROW_WISE = frozenset({"SGD", *ROW_WISE_OPTIMIZERS.values()})
"""Optimizers that, without these arguments, update the rows of a sparse gradient alone: one of
Keras, and those of `pipediag.optimizers`. Read from traced steps on Keras 3.15: Adagrad writes
rows, too, but scans its sums in full."""

_STAY = ("use_ema", "gradient_accumulation_steps")
"""Those that let a row-wise optimizer pass over the whole table, too."""

SCALES_THE_LOSS = "LossScaleOptimizer"
"""What Keras puts around an optimizer under `mixed_float16`."""

_INSTEAD = {
    "momentum": "leave `momentum` out, or take `pipediag.optimizers.LazySGD`",
    "weight_decay": (
        "leave the table out of `weight_decay`, by "
        '`optimizer.exclude_from_weight_decay(var_names=["embeddings"])` before `compile`'
    ),
    "use_ema": "leave `use_ema` out, which averages all rows after each step",
    "global_clipnorm": (
        "clip by `clipnorm`, which takes each gradient by itself, in place of `global_clipnorm`"
    ),
    "gradient_accumulation_steps": (
        "leave `gradient_accumulation_steps` out, which adds up gradients of the table's size, and "
        "take a larger batch"
    ),
}


def arguments_named(session: Session) -> str | None:
    """Those that are set, for the evidence; None where none is, or no optimizer of Keras trains."""
    loop = session.diagnosed_loop()
    names = _set(loop.keras) if loop and loop.keras else []
    return ", ".join(names) or None


def updates_whole_tables(keras: KerasUse) -> bool:
    """Whether it does so with a gradient that comes as rows, too."""
    return keras.optimizer not in _ROW_WISE or bool(_set(keras))


def to_add(keras: KerasUse) -> str:
    """What else to leave out, where another optimizer alone would still pass over the table."""
    named = [f"`{name}`" for name in _STAY if name in keras.optimizer_settings]
    said = f" Leave {' and '.join(named)} out, too." if named else ""
    if keras.optimizer == SCALES_THE_LOSS:
        said += (
            " The scaling of the loss looks for numbers that are not finite in a tensor as large "
            "as the table: `mixed_bfloat16` needs none."
        )
    return said


def to_drop(keras: KerasUse) -> str | None:
    """What to write in place of the arguments, as a sentence, where they alone make the passes."""
    names = _set(keras)
    if keras.optimizer not in _ROW_WISE or not names:
        return None
    parts = "; ".join(_INSTEAD[name] for name in names)
    return f"{parts[:1].upper()}{parts[1:]}: {keras.optimizer} then updates only rows of the batch."


def _set(keras: KerasUse) -> list[str]:
    row_wise = keras.optimizer in ROW_WISE_OPTIMIZERS.values()
    passes = _STAY if row_wise else _INSTEAD
    return [name for name in passes if name in keras.optimizer_settings]


STEPS_PER_CALL = 16
PROFILE_ALONE = "A profile alone holds nothing to try it on."
_KERAS_3_ONLY = "It is tried in Keras 3 alone, and the model is one of `tf_keras`."
_NO_MEMORY = (
    "There is no memory for a second set of the optimizer's variables beside those there are, "
    "which the trial would need."
)
OWN_LOOP = "It needs your own training loop rewritten; pipediag can't do that for you."
NO_MODEL_EDIT = (
    "Your own training loop, or a model that is compiled that way already: no setting of a Keras "
    "model is left to try."
)


def several_steps_a_call(session: Session, rule: str) -> Edit | None:
    """Many steps in one call; None where the loop is not Keras' or does so already, or can't."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or loop.keras.steps_per_execution > 1:
        return None
    if on_torch(session):
        return None
    hooked = [callback.name for callback in per_batch_callbacks(session)]
    return Edit(
        id=rule,
        label=f"steps_per_execution={STEPS_PER_CALL} in compile",
        changes=(SetModel({"steps_per_execution": STEPS_PER_CALL}),),
        caveat=f"{', '.join(hooked)}: called once in {STEPS_PER_CALL} steps." if hooked else None,
    )


def shared_calls_effect(session: Session) -> EffectOnResults:
    """What becomes of results where callbacks of the user's see one batch of many."""
    return "not known" if per_batch_callbacks(session) else "same results"


def compiled_by_xla(session: Session, rule: str) -> Edit | None:
    """The model compiled by XLA; None where the loop is not Keras', or runs eagerly or so already,
    or on PyTorch.

    XLA rounds otherwise, so that batches are the same and weights differ in their last digits.
    """
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or loop.keras.jit_compile or loop.keras.run_eagerly:
        return None
    if on_torch(session):
        return None
    return Edit(
        id=rule,
        label="jit_compile=True in compile",
        changes=(SetModel({"jit_compile": True}),),
        caveat="Compiling itself, once for each shape, is no part of the step's figure.",
    )


def in_sixteen_bits(session: Session, rule: str, policy: str) -> Edit | None:
    """All layers but the last under a policy for 16 bits; None where the loop is not Keras'."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None:
        return None
    caveat = "The model's last layer stays in float32."
    if policy == "mixed_float16":
        caveat += " The scaling of the loss, which `compile` adds, is left out."
    return Edit(
        id=rule,
        label=f"{policy} for all layers but the last",
        changes=(SetModel({"dtype_policy": policy}),),
        caveat=caveat,
    )


SLOTS_TWICE = 0.25
"""Part of the available memory that a second set of the optimizer's slots may take in a trial. Own
choice: what else an arm needs comes on top."""


def row_wise_update(session: Session, rule: str) -> Edit | None:
    """The same optimizer row by row, or `sgd_for_tables` where there is none or no memory for its
    slots.

    None where the loop is not Keras 3's, or there is no memory for the slots of either.
    """
    keras = keras_3(session)
    if keras is None:
        return None
    if no_row_wise(session) is not None:
        return sgd_for_tables(session, rule)
    row_wise = ROW_WISE_OPTIMIZERS[keras.optimizer or ""]
    averages = "use_ema" in keras.optimizer_settings
    return Edit(
        id=rule,
        label=f"{row_wise} in place of {keras.optimizer}"
        + (", without `use_ema`" if averages else ""),
        changes=(SetModel({"optimizer": "row_wise"}),),
        caveat="Averages of rows that a batch does not hold stay as they are, so training goes "
        "another way; how well the model then learns is not measured.",
    )


def no_row_wise(session: Session) -> str | None:
    """Why no row-wise optimizer is tried in place of the model's own, as the end of a sentence;
    None where one is, or where the loop is not Keras'."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None:
        return None
    own = loop.keras.optimizer
    if own == SCALES_THE_LOSS:
        return "a trial does not scale the loss for it, as it is for the model's own"
    if own not in ROW_WISE_OPTIMIZERS:
        return f"no row-wise optimizer goes by the rule of {own or 'the optimizer'}"
    if "gradient_accumulation_steps" in loop.keras.optimizer_settings:
        return "no row-wise optimizer accumulates gradients, as the model's own does"
    if not _fits(session, _optimizer_bytes(session, loop.keras)):
        return "there is no memory for a second set of slots, which a trial needs"
    return None


def sgd_for_tables(session: Session, rule: str) -> Edit | None:
    """Plain SGD for the embeddings, and the model's own optimizer for all else; None where the loop
    is not Keras 3's, or there is no memory for another set of slots for all else."""
    keras = keras_3(session)
    if keras is None:
        return None
    if not _fits(session, _optimizer_bytes(session, keras) - _table_slots(session)):
        return None
    left_out = [said for name, said in _PASSES if name in keras.optimizer_settings]
    if keras.optimizer == SCALES_THE_LOSS:
        left_out.append("The loss is not scaled.")
    return Edit(
        id=rule,
        label="plain SGD for the embeddings, the model's own optimizer for all else",
        changes=(SetModel({"optimizer": "sgd_for_tables"}),),
        caveat=" ".join([_PLAIN_STEPS, *left_out]),
    )


def no_optimizer_edit(session: Session) -> str:
    """Why neither `row_wise_update` nor `sgd_for_tables` is, as a sentence."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None:
        return NO_MODEL_EDIT
    return _KERAS_3_ONLY if keras_3(session) is None else _NO_MEMORY


def _optimizer_bytes(session: Session, keras: KerasUse) -> int:
    """Of all variables of the model's optimizer; at least the slots of the tables, as it may not
    have been built yet when it was asked."""
    return max(keras.optimizer_bytes or 0, _table_slots(session))


def _table_slots(session: Session) -> int:
    return sum(table.slot_bytes or 0 for table in session.embeddings)


def _fits(session: Session, needed: int) -> bool:
    """Whether a trial may take so many bytes beside what is there."""
    return needed <= SLOTS_TWICE * available_bytes(session)


_PLAIN_STEPS = (
    "Rows of embeddings take plain steps, of a learning rate that is yet to be found: how well the "
    "model then learns is not measured."
)
_PASSES = (
    ("global_clipnorm", "The norm over all gradients leaves embeddings out."),
    ("weight_decay", "Embeddings do not decay."),
    ("use_ema", "Embeddings are not averaged."),
    ("gradient_accumulation_steps", "Embeddings are updated by each batch alone."),
)
"""What passes over whole tables by an argument of the optimizer, and what becomes of it."""


def drawn_classes(session: Session, rule: str, classes: int, weight_bytes: int) -> Edit | None:
    """A softmax of a few drawn classes in training; None where the loop is not Keras 3's, or there
    is no memory for a row of weights a class and an optimizer's slots beside those there are.

    Args:
        classes: to draw, for all examples of a batch.
        weight_bytes: of the weights of all classes.
    """
    keras = keras_3(session)
    if keras is None:
        return None
    if not _fits(session, weight_bytes + (keras.optimizer_bytes or 0)):
        return None
    change = SetModel({"sampled_softmax": classes})
    label = f"softmax of {classes} drawn classes in training"
    if keras.jit_compile:
        # It has no kernel for the draw.
        change = SetModel({**change.settings, "jit_compile": False})
        label += ", without XLA"
    return Edit(
        id=rule,
        label=label,
        changes=(change,),
        caveat="It trains for another loss, an estimate: how well the model then learns, and how "
        "exact it becomes, is not measured. Metrics of training such as accuracy, which take all "
        "classes, are left out; `evaluate` and `predict` stay with the full softmax. The optimizer "
        "is the model's own, begun anew, and updates a row of weights a class as it does others.",
    )


def without_table_terms(session: Session, rule: str) -> Edit | None:
    """No regulariser and no constraint on a table, and rows alone updated; None where the loop is
    not Keras 3's, or `row_wise_update` is none and would be needed, as each of the two passes over
    the table while the other is there."""
    keras = keras_3(session)
    if keras is None:
        return None
    others: dict[str, Scalar] = {}
    label = "no regulariser and no constraint on embeddings"
    if updates_whole_tables(keras):
        update = row_wise_update(session, rule)
        if update is None:
            return None
        for change in update.changes:
            assert isinstance(change, SetModel)
            others |= change.settings
        label = f"{label}, {update.label}"
    return Edit(
        id=rule,
        label=label,
        changes=(SetModel({"table_terms_left_out": True, **others}),),
        caveat="What takes the place of the regulariser or the constraint is left out; how well "
        "the model then learns is not measured.",
    )
