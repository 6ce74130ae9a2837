"""Arguments of a Keras optimizer that let it pass over whole tables, and what to write instead."""

from __future__ import annotations

from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS

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
