"""Plain SGD for the embeddings of a Keras model, and an optimizer like its own for all else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class SgdForTables:
    """What a step of Keras asks of an optimizer, by two of them; all else is the second's.

    Gradients of the tables reach neither a norm over all nor the averages of the second.
    """

    def __init__(self, sgd: Any, others: Any, tables: Iterable[Any]) -> None:
        self._sgd = sgd
        self._others = others
        self._tables = list(tables)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._others, name)

    def build(self, variables: Iterable[Any]) -> None:
        """Make their variables: none for a table."""
        others = [one for one in variables if not self._is_table(one)]
        self._sgd.build(self._tables)
        self._others.build(others)

    def apply_gradients(self, gradients: Iterable[tuple[Any, Any]]) -> None:
        """Update each variable by its own."""
        pairs = list(gradients)
        of_tables = [pair for pair in pairs if self._is_table(pair[1])]
        of_others = [pair for pair in pairs if not self._is_table(pair[1])]
        self._sgd.apply_gradients(of_tables)
        if of_others:
            self._others.apply_gradients(of_others)

    def scale_loss(self, loss: Any) -> Any:
        """As it is."""
        return loss

    def _is_table(self, variable: Any) -> bool:
        return any(variable is one for one in self._tables)
