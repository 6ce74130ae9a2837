"""The optimizer that updates a table: the run's own, and what the ways out put in its place."""

from __future__ import annotations

from typing import Any

import keras

import pipediag.optimizers
from pipediag.session.table_bench import BenchTable
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, WayName


class NotMadeError(Exception):
    """No optimizer of the run's kind can be made here; says why, as a sentence."""


def own_optimizer(table: BenchTable, variables: list[Any]) -> Any:
    """One like the run's, built for these variables.

    Raises:
        NotMadeError: it is none that can be made anew, or keeps other variables than in the run.
    """
    made = _made(table, table.optimizer)
    made.build(variables)
    shape = tuple(variables[0].shape)
    slots = sum(tuple(one.shape) == shape for one in made.variables)
    if table.slots is not None and slots != table.slots:
        raise NotMadeError(
            f"{table.optimizer}, made anew, keeps {slots} variables of the table's size, and "
            f"{table.slots} in the run: it has arguments there that are not known."
        )
    return made


def optimizer_of(way: WayName, table: BenchTable, variables: list[Any]) -> Any:
    """The one of a way out, built for these variables.

    Raises:
        NotMadeError: there is none in place of the run's.
    """
    if way == "row-wise update":
        made = _made(table, ROW_WISE_OPTIMIZERS.get(table.optimizer or ""))
    elif way == "sgd":
        made = keras.optimizers.SGD()
    else:
        made = _made(table, table.optimizer)
    made.build(variables)
    return made


def _made(table: BenchTable, name: str | None) -> Any:
    where = (keras.optimizers, pipediag.optimizers)
    kind = next((found for one in where if (found := getattr(one, name or "", None))), None)
    if kind is None:
        raise NotMadeError(
            f"{table.optimizer} is neither an optimizer of Keras nor one that has a counterpart in "
            "pipediag.optimizers."
        )
    try:
        return kind(**table.arguments)
    except (TypeError, ValueError) as refused:
        raise NotMadeError(f"{name} could not be made as in the run: {refused}") from refused
