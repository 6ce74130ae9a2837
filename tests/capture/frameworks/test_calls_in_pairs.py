"""Metrics that are called eagerly, each timed as a `tf.function` too, on a Keras in small."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from pipediag.capture.frameworks.keras.paired_calls import PairedCalls
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Interruption, Stage
from pipediag.session.recording import Prediction

SCORES = np.ones(3)
_METRICS = """
class Metric:
    variables = ()
    def update_state(self, value): pass
    def result(self): return 1.0
"""


class Function:
    """A `tf.function` that was traced once."""

    def __init__(self, function: Callable[..., Any], **_: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def get_concrete_function(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(graph=None)

    def experimental_get_tracing_count(self) -> int:
        return 1


class Timed:
    """A training loop of the script's that updates metrics, whose calls are timed in pairs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.predictions: list[Prediction] = []
        self.loop: Any = SimpleNamespace(
            record=Mock(id="loop_0", step_functions=["train.py:3 step"]),
            last_ns=0,
            trains=True,
            interruption=None,
        )
        steps: Any = Mock(last_here=SimpleNamespace(loop=self.loop, stage=Stage.OWN))
        nest = SimpleNamespace(map_structure=lambda _, values: values)
        context = SimpleNamespace(executing_eagerly=lambda: True, context=lambda: None)
        record = SimpleNamespace(could_possibly_record=lambda: False)
        for name, module in (
            ("tensorflow", SimpleNamespace(function=Function, nest=nest)),
            ("tensorflow.python.eager.context", context),
            ("tensorflow.python.eager.record", record),
        ):
            monkeypatch.setitem(sys.modules, name, module)
        space: dict[str, Any] = {"__name__": "keras.src.toy"}
        exec(compile(_METRICS, "/usr/lib/site-packages/keras/src/toy.py", "exec"), space)
        self.metric: Callable[[], Any] = space["Metric"]
        PairedCalls(self.predictions, Mock(), steps).install_metrics(
            space["Metric"], Guard(lambda note: pytest.fail(str(note)))
        )

    @property
    def found(self) -> list[tuple[str | None, int, int]]:
        return [(one.model, one.calls, len(one.other_ms)) for one in self.predictions]


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Timed:
    return Timed(monkeypatch)


def test_two_metrics_that_one_line_names_are_timed_each_by_itself(timed: Timed) -> None:
    auc, loss = timed.metric(), timed.metric()
    for _ in range(20):
        auc.update_state(SCORES), loss.update_state(SCORES)
    assert timed.found == [("auc", 20, 8), ("loss", 20, 8)]


def test_metrics_that_go_by_one_name_are_timed_together(timed: Timed) -> None:
    for metric in [timed.metric() for _ in range(20)]:
        metric.update_state(SCORES)
    assert timed.found == [("metric", 20, 8)]


def test_a_metric_that_a_line_names_twice_is_not_timed(timed: Timed) -> None:
    auc = timed.metric()
    for _ in range(20):
        auc.update_state(SCORES), auc.update_state(SCORES)
    assert [(one.model, one.is_timed) for one in timed.predictions] == [(None, False)]


@pytest.mark.parametrize(("interruption", "loop_id"), [(None, "loop_0"), (Interruption(), None)])
def test_a_metric_that_is_updated_at_the_end_of_an_epoch_is_no_part_of_the_steps(
    timed: Timed, interruption: Interruption | None, loop_id: str | None
) -> None:
    auc, timed.loop.interruption = timed.metric(), interruption
    for _ in range(20):
        auc.update_state(SCORES)
    assert timed.found == [("auc", 20, 8)]
    assert timed.predictions[0].loop_id == loop_id
