"""A Keras model with an optimizer in place of its own, and back again."""

from __future__ import annotations

import importlib
from typing import Any

from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS

ROW_WISE = "row_wise"
"""The same rule as the model's own, for the rows of the batch alone."""

_REFUSED = ("gradient_accumulation_steps", "loss_scale_factor")
"""Arguments that those of `pipediag.optimizers` refuse."""


class OptimizerInPlace:
    """Lets a model train with another optimizer. Variables that it needs are its own."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._own: Any = getattr(model, "optimizer", None)
        self._made: Any = None

    def check(self, name: str) -> None:
        """See whether there is such an optimizer for the model.

        Raises:
            NotReplayableError: there is none.
        """
        if name != ROW_WISE:
            raise NotReplayableError(f"No model is trained with {name} here.")
        if type(self._own).__name__ not in ROW_WISE_OPTIMIZERS:
            raise NotReplayableError(
                f"There is no row-wise optimizer in place of {type(self._own).__name__}."
            )
        if any(getattr(self._own, one, None) for one in _REFUSED):
            raise NotReplayableError(
                "No row-wise optimizer accumulates gradients or scales the loss, as the model's "
                "own does."
            )

    def use(self, name: str | None) -> None:
        """An optimizer by its name; None is the model's own."""
        wanted = self._own if name is None else self._other()
        if getattr(self._model, "optimizer", None) is not wanted:
            self._model.optimizer = wanted

    def _other(self) -> Any:
        if self._made is None:
            other = self._row_wise()
            other.build(self._model.trainable_variables)
            # It goes on from the averages that there are, as the model's own would.
            for mine, theirs in zip(other.variables, self._kept(), strict=True):
                mine.assign(theirs)
            self._made = other
        return self._made

    def _row_wise(self) -> Any:
        # Found as the script would find it, so that it is what the script can have.
        ours = importlib.import_module("pipediag.optimizers")
        kind = getattr(ours, ROW_WISE_OPTIMIZERS[type(self._own).__name__])
        # Averages of the weights pass over the whole table, whatever updates it.
        changed = {"name": "pipediag_row_wise", "use_ema": False}
        return kind.from_config({**self._own.get_config(), **changed})

    def _kept(self) -> list[Any]:
        """Variables of the model's own optimizer, but for averages of the weights."""
        averages = getattr(self._own, "_model_variables_moving_average", None) or []
        left_out = {id(one) for one in averages}
        return [one for one in self._own.variables if id(one) not in left_out]
