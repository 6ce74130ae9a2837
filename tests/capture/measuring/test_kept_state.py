"""Putting a training back where a device has no room for a second copy of a variable."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.measuring import kept_state
from pipediag.capture.measuring.kept_state import KeptState, NotRestoredError, TrainingState


class Variable:
    """One on a device that has room for so many bytes beside it."""

    def __init__(self, values: Any, room: int = 1 << 30) -> None:
        self.name = "table"
        self.values = np.array(values, dtype="f")
        self.room = room

    def numpy(self) -> Any:
        return self.values.copy()

    def assign(self, value: Any) -> None:
        self._write(..., value)

    def __getitem__(self, rows: slice) -> Rows:
        return Rows(self, rows)

    def _write(self, rows: Any, value: Any) -> None:
        if value.nbytes > self.room:
            raise MemoryError("ResourceExhaustedError")
        self.values[rows] = value


class Rows:
    def __init__(self, variable: Variable, rows: slice) -> None:
        self._variable, self._rows = variable, rows

    def assign(self, value: Any) -> None:
        self._variable._write(self._rows, value)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> list[Variable]:
    made = [Variable(np.ones((100, 4))), Variable(np.full(3, 2.0)), Variable(3.0)]
    monkeypatch.setattr(kept_state, "_variables", lambda: made)
    return made


def train(variables: list[Variable]) -> None:
    for variable in variables:
        variable.values += 1


def test_a_table_that_does_not_fit_twice_is_put_back_a_few_rows_at_a_time(
    variables: list[Variable],
) -> None:
    state = TrainingState()
    train(variables)
    variables[0].room = 64
    state.restore()

    assert [float(one.values.mean()) for one in variables] == [1.0, 2.0, 3.0]


def test_one_that_can_not_be_put_back_does_not_keep_the_others(variables: list[Variable]) -> None:
    state = TrainingState()
    train(variables)
    variables[0].room = 0
    drawn = random.random()
    with pytest.raises(NotRestoredError, match="1 of 3 variables"):
        state.restore()

    assert [float(one.values.mean()) for one in variables] == [2.0, 2.0, 3.0]
    assert random.random() == drawn, "the generators are put back all the same"


def test_where_that_fails_nothing_more_is_tried(
    variables: list[Variable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_state, "lacks_memory", lambda: None)
    notes: list[str] = []
    kept = KeptState(Guard(notes.append), notes.append)
    assert kept.keep() is None
    train(variables)
    variables[0].room = 0
    kept.show()
    kept.give_back()

    assert len(notes) == 1
    assert kept.keep() == kept.lost is not None
