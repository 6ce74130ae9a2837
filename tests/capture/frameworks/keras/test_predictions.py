"""`predict_on_batch` timed at calls of `predict`, of models that only count what they are asked."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from pipediag.capture.frameworks.keras.predictions import PredictTrials
from pipediag.session.recording import Prediction

ROWS = np.arange(6.0).reshape(3, 2)


class Model:
    def __init__(self, factor: float = 2.0) -> None:
        self.factor, self.asked = factor, 0

    def predict_on_batch(self, data: Any) -> Any:
        self.asked += 1
        return data * self.factor


def called(
    model: Model, data: Any = ROWS, result: Any = 2.0 * ROWS, times: int = 20, **more: Any
) -> Prediction | None:
    predictions: list[Prediction] = []
    trials = PredictTrials(predictions, Mock())
    for _ in range(times):
        trials.called(10_000_000, result, model, (data,), more)
    assert len(predictions) <= 1
    return predictions[0] if predictions else None


def test_a_line_that_calls_often_is_timed_in_pairs() -> None:
    model = Model()
    found = called(model, verbose=0, batch_size=32)

    assert found is not None
    assert found.file == __file__
    assert found.rows == 3
    assert found.predict_ms == [10.0] * 8
    assert len(found.on_batch_ms) == 8
    assert found.is_timed
    assert model.asked == 9  # the first one traces


def test_a_line_that_calls_seldom_is_left_alone() -> None:
    model = Model()
    assert called(model, times=5) is None
    assert model.asked == 0


@pytest.mark.parametrize(
    ("model", "given", "why"),
    [
        (Model(3.0), {}, "other values"),
        (Model(), {"data": iter(())}, "no arrays"),
        (Model(), {"callbacks": [object()]}, "arguments"),
        (Model(), {"steps": 3}, "arguments"),
        (Model(), {"data": np.broadcast_to(0.0, (9_000_000,))}, "too many"),
        (object(), {}, "AttributeError"),
    ],
)
def test_what_can_not_be_compared_says_why(model: Any, given: dict[str, Any], why: str) -> None:
    found = called(model, **given)
    assert found is not None
    assert not found.is_timed
    assert why in (found.lacking or "")
