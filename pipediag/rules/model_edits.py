"""Edits of a Keras model that several rules recommend."""

from __future__ import annotations

from pipediag.facts.machine import available_bytes
from pipediag.facts.python_callables import per_batch_callbacks
from pipediag.facts.step import keras_3, on_torch
from pipediag.session.edits import Edit, SetModel
from pipediag.session.model import Session
from pipediag.session.recorded_loops import KerasUse
from pipediag.vocabulary import FUSED, OTHER_OPTIMIZERS, ROW_WISE, Scalar

STEPS_PER_CALL = 16
PROFILE_ALONE = "A profile alone is not enough to try it on."
OWN_LOOP = "Your own training loop would have to be rewritten; pipediag can't do that for you."
NO_MODEL_EDIT = (
    "This is your own training loop, or the model is already compiled this way: there is no Keras "
    "setting left to try."
)
NO_MEMORY = "A trial needs other sets of these variables, and there is not enough memory for them."
_UNMEASURED = "The trial does not measure how well the model then learns."
SCALES_THE_LOSS = "LossScaleOptimizer"
"""The wrapper that Keras puts around an optimizer under `mixed_float16`."""
SLOTS_TWICE = 0.25
"""Part of the available memory that a second set of the optimizer's slots may take in a trial. Own
choice: what else a trial needs comes on top."""


def _setting(rule: str, label: str, caveat: str | None, **settings: Scalar) -> Edit:
    return Edit(rule, label, (SetModel(settings),), caveat=caveat)


def _compiled(session: Session | None) -> KerasUse | None:
    """Return how Keras trains on TensorFlow or JAX; None for a loop of one's own."""
    return None if session is None or on_torch(session) else session.keras


def several_steps_a_call(session: Session | None, rule: str) -> Edit | None:
    """Return many steps per call; None where the loop is not Keras' or does so already."""
    keras = _compiled(session)
    if session is None or keras is None or keras.steps_per_execution > 1:
        return None
    hooked = ", ".join(callback.name for callback in per_batch_callbacks(session))
    caveat = f"{hooked}: called once every {STEPS_PER_CALL} steps." if hooked else None
    label = f"steps_per_execution={STEPS_PER_CALL} in compile"
    return _setting(rule, label, caveat, steps_per_execution=STEPS_PER_CALL)


def condition_of(session: Session | None, edit: Edit | None) -> str | None:
    """Return the condition of an edit that has several steps run per call, if callbacks of the
    script's see each batch: what they write of it would be lost."""
    changes = edit.changes if edit is not None else ()
    settings = {name for one in changes if isinstance(one, SetModel) for name in one.settings}
    if session is None or "steps_per_execution" not in settings:
        return None
    names = " and ".join(f"`{callback.name}`" for callback in per_batch_callbacks(session))
    return f"if {names} may see one of {STEPS_PER_CALL} batches" if names else None


def compiled_by_xla(session: Session | None, rule: str) -> Edit | None:
    """Return the model compiled by XLA, which rounds otherwise; None where it is or can't be, and
    where `predict` would be compiled for each number of rows: that took a project 1.5 times as
    long."""
    keras = _compiled(session)
    if session is None or keras is None or keras.jit_compile or keras.run_eagerly:
        return None
    rows = session.run.parts if session.run is not None else []
    if any("`predict`" in (row.what or "") for row in rows):
        return None
    caveat = "The step time does not include compiling, which happens once for each shape."
    return _setting(rule, "jit_compile=True in compile", caveat, jit_compile=True)


def in_sixteen_bits(session: Session | None, rule: str, policy: str) -> Edit | None:
    """Return all layers but the last under a policy for 16 bits; None for a loop of one's own."""
    if session is None or session.keras is None:
        return None
    caveat = "The model's last layer stays in float32."
    if policy == "mixed_float16":
        caveat += " The loss scaling that `compile` adds is left out."
    label = f"{policy} for all layers but the last"
    return _setting(rule, label, caveat, dtype_policy=policy)


# Optimizers that pass over whole embedding tables

_BY_ROWS, _IN_ONE_PASS = OTHER_OPTIMIZERS[ROW_WISE], OTHER_OPTIMIZERS[FUSED]

PLAIN_SGD = "SGD without momentum or weight decay also updates only those rows."
_STAY = ("use_ema", "gradient_accumulation_steps")
"""Arguments that let a row-wise optimizer pass over the whole table, too."""


def row_wise_advice(keras: KerasUse) -> str:
    """Return by what to replace the optimizer, and what else would pass over the table."""
    row_wise = _BY_ROWS.get(keras.optimizer or "", "LazyAdam")
    advice = f"Compile with `pipediag.optimizers.{row_wise}`."
    if keras.optimizer != "SGD":
        advice += f" {PLAIN_SGD}"
    named = [f"`{name}`" for name in _STAY if name in keras.optimizer_settings]
    if named:
        advice += f" Also remove {' and '.join(named)}."
    if keras.optimizer == SCALES_THE_LOSS:
        advice += " Loss scaling also passes over the table; `mixed_bfloat16` needs none."
    return advice


def row_wise_update(session: Session, rule: str) -> Edit | None:
    """Return the same optimizer row by row, or None where it can't be tried."""
    keras = keras_3(session)
    if keras is None or no_row_wise(session) is not None:
        return None
    row_wise = _BY_ROWS[keras.optimizer or ""]
    without = ", without `use_ema`" if "use_ema" in keras.optimizer_settings else ""
    label = f"{row_wise} instead of {keras.optimizer}{without}"
    return _setting(rule, label, _UNMEASURED, optimizer=ROW_WISE)


_NEEDS_PIPEDIAG = "The training, and what loads its saved optimizer, then import pipediag."


def fused_update(session: Session, rule: str) -> Edit | None:
    """Return the same optimizer with fewer passes over each table, and equal results; None where
    there is none. XLA fuses the passes of Keras' own."""
    keras = keras_3(session)
    if keras is None or keras.optimizer not in _IN_ONE_PASS or no_row_wise(session) is not None:
        return None
    if keras.jit_compile or keras.run_eagerly or "amsgrad" in keras.optimizer_settings:
        return None
    label = f"{_IN_ONE_PASS[keras.optimizer]} instead of {keras.optimizer}"
    return _setting(rule, label, _NEEDS_PIPEDIAG, optimizer=FUSED)


def no_row_wise(session: Session) -> str | None:
    """Return why there is no `row_wise_update`, as a sentence, or None."""
    if session.keras is None:
        return NO_MODEL_EDIT
    keras = keras_3(session)
    if keras is None:
        return "It is tried only with Keras 3, and this model uses `tf_keras`."
    accumulates = "gradient_accumulation_steps" in keras.optimizer_settings
    if keras.optimizer not in _BY_ROWS or accumulates:
        return "`pipediag.optimizers` has no optimizer that does the same by rows."
    # Its variables may not be built yet, and then are at least the slots of tables.
    slots = sum(table.slot_bytes or 0 for table in session.embeddings)
    sets = 1 + (keras.optimizer in _IN_ONE_PASS)
    if sets * max(keras.optimizer_bytes or 0, slots) > SLOTS_TWICE * available_bytes(session):
        return NO_MEMORY
    return None
