"""Edits of a Keras model that several rules recommend."""

from __future__ import annotations

from dataclasses import replace

from pipediag.facts.callbacks import per_batch_callbacks
from pipediag.facts.machine import available_bytes
from pipediag.facts.undivided import on_torch
from pipediag.rules.embedding.optimizer_arguments import SCALES_THE_LOSS, updates_whole_tables
from pipediag.session.edits import Edit, SetModel
from pipediag.session.model import Session
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, EffectOnResults, Scalar

STEPS_PER_CALL = 16
PROFILE_ALONE = "A profile alone holds nothing to try it on."
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
        once=True,
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
        once=True,
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
        once=True,
    )


def in_single_precision(session: Session, rule: str) -> Edit | None:
    """Layers under a policy for 16 bits in 32; None where the loop is not Keras'."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None:
        return None
    return Edit(
        id=rule,
        label="float32 for all layers under a mixed policy",
        changes=(SetModel({"dtype_policy": "float32"}),),
        caveat="A scaling of the loss, which `compile` has added, stays.",
        once=True,
    )


def different_ids(session: Session, rule: str) -> Edit | None:
    """Each embedding looked up by different ids alone; None where the loop is not Keras 3's, or XLA
    compiles it, which knows shapes before it knows how many ids differ."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or session.environment.legacy_keras:
        return None
    if loop.keras.jit_compile:
        return None
    return Edit(
        id=rule,
        label="`tf.unique` before each embedding's lookup",
        changes=(SetModel({"unique_ids": True}),),
        caveat="Every embedding of the model is looked up so, also where few ids repeat.",
        once=True,
    )


SLOTS_TWICE = 0.25
"""Part of the available memory that a second set of the optimizer's slots may take in a trial. Own
choice: what else an arm needs comes on top."""


def row_wise_update(session: Session, rule: str) -> Edit | None:
    """The same optimizer row by row, or `sgd_for_tables` where there is none or no memory for its
    slots.

    None where the loop is not Keras', or uses another Keras or backend than its model can be
    compiled otherwise in.
    """
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or session.environment.legacy_keras:
        return None
    row_wise = ROW_WISE_OPTIMIZERS.get(loop.keras.optimizer or "")
    if "gradient_accumulation_steps" in loop.keras.optimizer_settings:
        # Refused by those that are row-wise.
        row_wise = None
    slots = sum(table.slot_bytes or 0 for table in session.embeddings)
    if row_wise is None or slots > SLOTS_TWICE * available_bytes(session):
        return sgd_for_tables(session, rule)
    averages = "use_ema" in loop.keras.optimizer_settings
    return Edit(
        id=rule,
        label=f"{row_wise} in place of {loop.keras.optimizer}"
        + (", without `use_ema`" if averages else ""),
        changes=(SetModel({"optimizer": "row_wise"}),),
        caveat="Averages of rows that a batch does not hold stay as they are, so training goes "
        "another way; how well the model then learns is not measured.",
        once=True,
    )


def sgd_for_tables(session: Session, rule: str) -> Edit | None:
    """Plain SGD for the embeddings, and the model's own optimizer for all else; None where the loop
    is not Keras 3's."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or session.environment.legacy_keras:
        return None
    left_out = [said for name, said in _PASSES if name in loop.keras.optimizer_settings]
    if loop.keras.optimizer == SCALES_THE_LOSS:
        left_out.append("The loss is not scaled.")
    return Edit(
        id=rule,
        label="plain SGD for the embeddings, the model's own optimizer for all else",
        changes=(SetModel({"optimizer": "sgd_for_tables"}),),
        caveat=" ".join([_PLAIN_STEPS, *left_out]),
        once=True,
    )


_PLAIN_STEPS = (
    "Rows of embeddings take plain steps, of a learning rate that is yet to be found: how well the "
    "model then learns is not measured."
)
_PASSES = (
    ("global_clipnorm", "The norm over all gradients leaves embeddings out."),
    ("weight_decay", "Embeddings do not decay."),
    ("use_ema", "Embeddings are not averaged."),
)
"""What passes over whole tables by an argument of the optimizer, and what becomes of it."""


def drawn_classes(session: Session, rule: str, classes: int, weight_bytes: int) -> Edit | None:
    """A softmax of a few drawn classes in training; None where the loop is not Keras 3's, or there
    is no memory for a row of weights a class and an optimizer's slots beside those there are.

    Args:
        classes: to draw, for all examples of a batch.
        weight_bytes: of the weights of all classes.
    """
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or session.environment.legacy_keras:
        return None
    needed = weight_bytes + (loop.keras.optimizer_bytes or 0)
    if needed > SLOTS_TWICE * available_bytes(session):
        return None
    change = SetModel({"sampled_softmax": classes})
    label = f"softmax of {classes} drawn classes in training"
    if loop.keras.jit_compile:
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
        once=True,
    )


def without_table_terms(session: Session, rule: str) -> Edit | None:
    """No regulariser and no constraint on a table, and rows alone updated; None where
    `row_wise_update` is, as each of the two passes over the table while the other is there."""
    update = row_wise_update(session, rule)
    loop = session.diagnosed_loop()
    if update is None or loop is None or loop.keras is None:
        return None
    others: dict[str, Scalar] = {}
    label = "no regulariser and no constraint on embeddings"
    if updates_whole_tables(loop.keras):
        for change in update.changes:
            assert isinstance(change, SetModel)
            others |= change.settings
        label = f"{label}, {update.label}"
    return replace(
        update,
        label=label,
        changes=(SetModel({"table_terms_left_out": True, **others}),),
        caveat="What takes the place of the regulariser or the constraint is left out; how well "
        "the model then learns is not measured.",
    )
