"""Callbacks and calls of Keras that are timed, on a Keras in small."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from pipediag.capture.frameworks.keras import framework
from pipediag.capture.frameworks.keras.framework import Keras, time_callbacks
from pipediag.capture.frameworks.keras.paired_calls import PairedCalls
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import CALLBACK_CLOCK
from pipediag.session.recording import Prediction
from pipediag.session.timeline import Span
from tests.capture.test_timeline import TimelineStage

_FILE = "/usr/lib/site-packages/keras/src/toy.py"

_SOURCE = """
class Callback:
    pass

class CallbackList(Callback):
    def __init__(self, callbacks):
        self.callbacks = list(callbacks)

def add(method):
    def nothing(self, *args, **kwargs): pass
    def each(self, *args, **kwargs):
        for callback in self.callbacks:
            getattr(callback, method)(*args, **kwargs)
    nothing.__qualname__ = f"Callback.{method}"
    setattr(Callback, method, nothing)
    setattr(CallbackList, method, each)

for place in ("train", "epoch", "train_batch"):
    add(f"on_{place}_begin")
    add(f"on_{place}_end")

class History(Callback):
    def on_train_begin(self, logs=None):
        self.epochs = []
    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(epoch)

class Trainer:
    def fit(self, callbacks, epochs=1):
        told = CallbackList(callbacks)
        told.on_train_begin()
        for epoch in range(epochs):
            told.on_epoch_begin(epoch)
            told.on_epoch_end(epoch, {"loss": 0.5})
        told.on_train_end()
        return self
    def evaluate(self, x):
        return x
"""


def toy_keras() -> Any:
    space: dict[str, Any] = {"__name__": "keras.src.toy"}
    exec(compile(_SOURCE, _FILE, "exec"), space)
    classes = {name: one for name, one in space.items() if name[0].isupper()}
    return SimpleNamespace(__file__=_FILE, **classes)


class TimedStage(TimelineStage):
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(path, monkeypatch)
        self.guard = Guard(self.notes.append)
        self.keras = toy_keras()
        timeline: Any = self.timeline
        self.steps = Mock()
        watchers: Any = SimpleNamespace(
            guard=self.guard,
            steps=self.steps,
            updates=None,
            held=SimpleNamespace(makes_trials=False),
            state=None,
            timeline=timeline,
        )
        self.hooks = Keras(watchers)
        self.hooks.time_methods(self.keras.Trainer)
        time_callbacks(self.keras.CallbackList, self.guard, timeline)
        self.model = self.keras.Trainer()

    def takes(self, ns: int) -> None:
        self.now += ns

    @property
    def called(self) -> list[tuple[str, int]]:
        spans = [span for span in self.spans if span.kind == "callback"]
        return [(span.name, ns) for span in spans if (ns := _ns(span))]


def _ns(span: Span) -> int:
    assert span.end_ns is not None
    return span.end_ns - span.start_ns


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimedStage:
    return TimedStage(tmp_path, monkeypatch)


class Hearing:
    """Two callbacks that hear of batches."""

    def __init__(self, timed: TimedStage) -> None:
        self.heard: list[tuple[str, int]] = []
        hear = self.heard.append

        class Hears(timed.keras.Callback):  # type: ignore[misc, name-defined]
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                hear(("begin", batch))

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                hear(("end", batch))

        self.listed = timed.keras.CallbackList([Hears(), Hears()])
        self.own = self.listed.callbacks

    def batch(self, number: int) -> None:
        self.listed.on_train_batch_begin(number)
        self.listed.on_train_batch_end(number)


BOTH_HEARD = [(event, batch) for batch in (0, 1) for event in ("begin", "end") for _ in range(2)]


def test_callbacks_are_clocked_while_stacks_are_sampled(
    timed: TimedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(range(0, 1000, 10))
    monkeypatch.setattr(framework.time, "monotonic_ns", lambda: next(moments))
    hearing = Hearing(timed)
    CALLBACK_CLOCK.start()
    hearing.batch(0)
    taken = CALLBACK_CLOCK.stop()
    hearing.batch(1)

    assert taken == {"Hears": 40}
    assert hearing.listed.callbacks is hearing.own
    assert (hearing.heard, timed.notes) == (BOTH_HEARD, [])


def test_after_an_error_of_ours_all_of_them_hear_of_the_batch(
    timed: TimedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing = Hearing(timed)
    monkeypatch.delattr(CALLBACK_CLOCK, "running")
    hearing.batch(0)
    hearing.batch(1)

    assert hearing.heard == BOTH_HEARD
    assert hearing.listed.callbacks is hearing.own
    # Once for the begin of a batch, and once for its end.
    assert len(timed.notes) == 2
    assert all("stopped clocking callbacks after an error" in note for note in timed.notes)


def test_fit_and_what_it_calls_are_spans_at_the_users_line(timed: TimedStage) -> None:
    here = inspect.currentframe()
    timed.model.fit([]).evaluate(3)
    line = here.f_lineno - 1

    fit, evaluation = timed.spans
    assert (fit.kind, fit.name, fit.file, fit.line) == ("fit", "fit", __file__, line)
    assert (evaluation.kind, evaluation.name) == ("evaluation", "evaluate")
    assert (evaluation.file, evaluation.line) == (__file__, line)


def test_a_fit_that_is_over_is_told_of_also_where_it_was_interrupted(timed: TimedStage) -> None:
    left = timed.steps.fit_over

    class Trainer:
        def fit(self, interrupted: bool) -> None:
            if interrupted:
                raise KeyboardInterrupt

        def evaluate(self) -> None: ...

    timed.hooks.time_methods(Trainer)
    Trainer().evaluate()
    assert left.call_count == 0
    Trainer().fit(interrupted=False)
    with pytest.raises(KeyboardInterrupt):
        Trainer().fit(interrupted=True)

    assert left.call_count == 2


def test_each_callback_is_timed_from_its_turn_to_the_next_ones(timed: TimedStage) -> None:
    class Slow(timed.keras.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            timed.takes(1)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            timed.takes(10)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            timed.takes(100)

        def on_train_end(self, logs: Any = None) -> None:
            timed.takes(1000)

    class Slower(Slow):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            super().on_epoch_end(epoch, logs)
            timed.takes(50)

    timed.model.fit([Slow(), Slower()], epochs=2)

    epoch = [("Slow", 10), ("Slower", 10), ("Slow", 100), ("Slower", 150)]
    begin, end = [("Slow", 1), ("Slower", 1)], [("Slow", 1000), ("Slower", 1000)]
    assert timed.called == [*begin, *epoch, *epoch, *end]
    by_name = {span.name: span for span in timed.spans if _ns(span) >= 100}
    hook = Slower.on_epoch_end.__code__
    last = [span for span in timed.spans if span.name == "Slower" and _ns(span) == 150][-1]
    assert (last.file, last.line) == (__file__, hook.co_firstlineno)
    assert by_name["Slow"].line == Slow.on_train_end.__code__.co_firstlineno


def test_what_a_callback_calls_is_within_it_and_its_own_callbacks_are_not_told_apart(
    timed: TimedStage,
) -> None:
    keras, model = timed.keras, timed.model

    class Inner(keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            timed.takes(3)

    class Outer(keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            model.evaluate(3)
            model.fit([Inner()])
            timed.takes(1)

    model.fit([Outer()])

    assert [(span.kind, span.name, _ns(span)) for span in timed.spans] == [
        ("fit", "fit", 4),
        ("callback", "Outer", 4),
        ("evaluation", "evaluate", 0),
        ("fit", "fit", 3),
    ]


def test_what_a_callback_adds_to_the_list_is_told_and_stays(timed: TimedStage) -> None:
    added = timed.keras.History()

    class Adds(timed.keras.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            told.callbacks.append(added)

    told = timed.keras.CallbackList([Adds()])
    told.on_train_begin()

    assert added.epochs == []
    assert told.callbacks[1] is added


def test_an_error_of_a_callback_ends_its_turn_and_is_the_scripts(timed: TimedStage) -> None:
    class Fails(timed.keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            timed.takes(2)
            raise ValueError("the script's own")

    told = timed.keras.CallbackList([Fails(), timed.keras.History()])
    with pytest.raises(ValueError, match="the script's own"):
        told.on_epoch_end(0)

    assert timed.called == [("Fails", 2)]
    assert type(told.callbacks) is list
    assert not timed.timeline.in_a_callback


def test_the_list_is_put_back_where_all_of_us_steps_aside_meanwhile(timed: TimedStage) -> None:
    class Forks(timed.keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            timed.guard.step_aside()

    told = timed.keras.CallbackList([Forks(), timed.keras.History()])
    told.callbacks[1].on_train_begin()
    told.on_epoch_end(4)

    assert type(told.callbacks) is list
    assert told.callbacks[1].epochs == [4]


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
    trials = PairedCalls(predictions, Mock(), Mock(last_here=None))
    for _ in range(times):
        trials.predicted(10_000_000, result, model, (data,), more)
    assert len(predictions) <= 1
    return predictions[0] if predictions else None


def test_a_line_that_calls_often_is_timed_in_pairs() -> None:
    model = Model()
    found = called(model, verbose=0, batch_size=32)

    assert found.file == __file__
    assert found.rows == 3
    assert found.own_ms == [10.0] * 8
    assert len(found.other_ms) == 8
    assert found.is_timed
    assert model.asked == 9  # the first one traces
    assert called(model, times=5) is None, "a line that calls seldom is left alone"


class Tracing(Model):
    """Keras' function is traced for the first number of rows, and then for `more` others."""

    def __init__(self, more: int) -> None:
        super().__init__()
        self.more, self.traced = more, set[int]()
        self.predict_function = Mock(experimental_get_tracing_count=lambda: len(self.traced))

    def predict_on_batch(self, data: Any) -> Any:
        if len(data) not in self.traced and len(self.traced) <= self.more:
            self.traced.add(len(data))
        return super().predict_on_batch(data)


@pytest.mark.parametrize(("more", "is_timed"), [(1, True), (9, False)])
def test_a_trace_for_another_number_of_rows_is_no_time_of_a_call(more: int, is_timed: bool) -> None:
    predictions: list[Prediction] = []
    pairs, model = PairedCalls(predictions, Mock(), Mock(last_here=None)), Tracing(more)
    for rows in range(1, 20):
        data = np.ones((rows, 2))
        pairs.predicted(10_000_000, 2.0 * data, model, (data,), {})
    (found,) = predictions
    assert found.is_timed is is_timed
    # Each of eight pairs, the first trace, and the call after the second one.
    assert not is_timed or model.asked == 8 + 2


def test_a_few_batches_of_the_scripts_own_size_are_none_too_many() -> None:
    rows = np.ones(16_000)
    found = called(Model(), rows, 2.0 * rows, batch_size=4_096)
    assert (found.rows, found.is_timed) == (16_000, True)


@pytest.mark.parametrize(
    ("model", "given", "why"),
    [
        (Model(3.0), {}, "other values"),
        (Model(), {"data": iter(())}, "no arrays"),
        (Model(), {"callbacks": [object()]}, "arguments"),
        (Model(), {"data": np.zeros((100, 90_000))}, "too many"),
        (Model(), {"data": np.zeros((5_000, 2))}, "too many"),
        (Model(), {"data": [np.zeros(3), np.zeros(17_000)], "batch_size": 4_096}, "too many"),
        (object(), {}, "AttributeError"),
    ],
)
def test_what_can_not_be_compared_says_why(model: Any, given: dict[str, Any], why: str) -> None:
    found = called(model, **given)
    assert not found.is_timed
    assert why in (found.lacking or "")
