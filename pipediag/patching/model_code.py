"""Code of an optimizer of Keras that is to be written by hand."""

from __future__ import annotations

_SGD_FOR_TABLES = """\
class SgdForTables(keras.optimizers.{optimizer}):
    def update_step(self, gradient, variable, learning_rate):
        if "embeddings" not in variable.name:
            return super().update_step(gradient, variable, learning_rate)
        rate = keras.ops.cast(0.1, variable.dtype)  # to be found anew
        self.assign_sub(variable, keras.ops.multiply(gradient, rate))

model.compile(SgdForTables(...), ...)  # with the arguments that it had"""
_SCALED = "LossScaleOptimizer"


def sgd_for_tables(optimizer: str | None) -> list[str]:
    """An optimizer in the place of Keras' of that name."""
    # What scales the loss is around another one, whose name is not known.
    named = optimizer if optimizer not in (None, _SCALED) else "Adam"
    return _SGD_FOR_TABLES.format(optimizer=named).splitlines()
