"""Regularisers and constraints of a Keras model's embeddings, taken out and put back."""

from __future__ import annotations

from typing import Any

from pipediag.capture.frameworks.keras.tables import embeddings_of
from pipediag.capture.replay import NotReplayableError


class TableTerms:
    """Lets a model train without what passes over its whole tables beside their update."""

    def __init__(self, model: Any) -> None:
        variables: list[Any] = [
            getattr(layer, "_embeddings", None) for layer in embeddings_of(model)
        ]
        self._own = [
            (variable, variable.regularizer, variable.constraint)
            for variable in variables
            if getattr(variable, "regularizer", None) or getattr(variable, "constraint", None)
        ]
        self._are_out = False

    def check(self) -> None:
        """See whether there are any.

        Raises:
            NotReplayableError: there are none.
        """
        if not self._own:
            raise NotReplayableError("No embedding has a regulariser or a constraint.")

    def leave_out(self, wanted: bool) -> None:
        """Take them out or put them back; Keras asks for them while it traces a step."""
        if wanted == self._are_out:
            return
        for variable, regularizer, constraint in self._own:
            variable.regularizer = None if wanted else regularizer
            variable.constraint = None if wanted else constraint
        self._are_out = wanted
