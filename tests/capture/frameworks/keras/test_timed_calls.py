"""Keras's calls and callbacks are timed, and go on as they would: on a Keras in small."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.frameworks.keras.timed_calls import TimedCalls
from pipediag.capture.guard import Guard
from pipediag.session.timeline import Span
from tests.capture.frameworks.keras.toy_keras import toy_keras
from tests.capture.test_timeline import TimelineStage


class Stage(TimelineStage):
    """A timeline, and a Keras whose calls are timed on it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(path, monkeypatch)
        self.guard = Guard(self.notes.append)
        self.keras = toy_keras()
        self.timed = TimedCalls(self.timeline, self.guard)
        self.timed.time_methods(self.keras.Trainer)
        self.timed.time_callbacks(self.keras.CallbackList)
        self.model = self.keras.Trainer()

    def takes(self, ns: int) -> None:
        self.now += ns

    @property
    def called(self) -> list[tuple[str, int]]:
        """Callbacks that took a while, and how long."""
        spans = [span for span in self.spans if span.kind == "callback"]
        return [(span.name, ns) for span in spans if (ns := _ns(span))]


def _ns(span: Span) -> int:
    assert span.end_ns is not None
    return span.end_ns - span.start_ns


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_fit_and_what_it_calls_are_spans_at_the_users_line(stage: Stage) -> None:
    here = inspect.currentframe()
    assert here is not None
    stage.model.fit([]).evaluate(3)
    line = here.f_lineno - 1

    fit, evaluation = stage.spans
    assert (fit.kind, fit.name, fit.file, fit.line) == ("fit", "fit", __file__, line)
    assert (evaluation.kind, evaluation.name) == ("evaluation", "evaluate")
    assert (evaluation.file, evaluation.line) == (__file__, line)


def test_a_fit_that_is_over_is_told_of_also_where_it_was_interrupted(stage: Stage) -> None:
    left: list[str] = []

    class Trainer:
        def fit(self, interrupted: bool) -> None:
            if interrupted:
                raise KeyboardInterrupt

        def evaluate(self) -> None: ...

    timeline: Any = stage.timeline
    TimedCalls(timeline, stage.guard, fit_over=lambda: left.append("left")).time_methods(Trainer)
    Trainer().evaluate()
    assert left == []
    Trainer().fit(interrupted=False)
    with pytest.raises(KeyboardInterrupt):
        Trainer().fit(interrupted=True)

    assert left == ["left", "left"]


def test_each_callback_is_timed_from_its_turn_to_the_next_ones(stage: Stage) -> None:
    class Slow(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            stage.takes(1)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            stage.takes(10)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            stage.takes(100)

        def on_train_end(self, logs: Any = None) -> None:
            stage.takes(1000)

    class Slower(Slow):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            super().on_epoch_end(epoch, logs)
            stage.takes(50)

    stage.model.fit([Slow(), Slower()], epochs=2)

    epoch = [("Slow", 10), ("Slower", 10), ("Slow", 100), ("Slower", 150)]
    begin, end = [("Slow", 1), ("Slower", 1)], [("Slow", 1000), ("Slower", 1000)]
    assert stage.called == [*begin, *epoch, *epoch, *end]
    by_name = {span.name: span for span in stage.spans if _ns(span) >= 100}
    hook = Slower.on_epoch_end.__code__
    last = [span for span in stage.spans if span.name == "Slower" and _ns(span) == 150][-1]
    assert (last.file, last.line) == (__file__, hook.co_firstlineno)
    assert by_name["Slow"].line == Slow.on_train_end.__code__.co_firstlineno


def test_a_function_that_is_given_as_a_callback_is_timed_where_it_is(stage: Stage) -> None:
    def after(epoch: int, logs: Any) -> None:
        stage.takes(7)

    stage.model.fit([stage.keras.LambdaCallback(after)])

    (span,) = [span for span in stage.spans if span.kind == "callback"]
    assert (span.name, _ns(span)) == ("LambdaCallback", 7)
    assert (span.file, span.line) == (__file__, after.__code__.co_firstlineno)


def test_keras_own_callbacks_have_no_line_and_empty_hooks_no_span(stage: Stage) -> None:
    stage.model.fit([stage.keras.History(), stage.keras.Callback()], epochs=1)

    spans = [span for span in stage.spans if span.kind == "callback"]
    assert [(span.name, span.file, span.line) for span in spans] == [("History", None, None)] * 2


def test_a_users_class_that_is_named_as_keras_base_is_timed(stage: Stage) -> None:
    base = stage.keras.Callback

    class Callback(base):  # type: ignore[misc, valid-type]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            stage.takes(5)

    Callback.on_epoch_end.__qualname__ = "Callback.on_epoch_end"
    stage.model.fit([Callback()])

    assert stage.called == [("Callback", 5)]


def test_what_a_callback_calls_is_within_it_and_its_own_callbacks_are_not_told_apart(
    stage: Stage,
) -> None:
    keras, model = stage.keras, stage.model

    class Inner(keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            stage.takes(3)

    class Outer(keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            model.evaluate(3)
            model.fit([Inner()])
            stage.takes(1)

    model.fit([Outer()])

    assert [(span.kind, span.name, _ns(span)) for span in stage.spans] == [
        ("fit", "fit", 4),
        ("callback", "Outer", 4),
        ("evaluation", "evaluate", 0),
        ("fit", "fit", 3),
    ]


def test_the_scripts_classes_and_lists_are_as_they_were(stage: Stage) -> None:
    class Mine(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None: ...

    before = dict(vars(Mine))
    told = stage.keras.CallbackList([Mine()])
    own = told.callbacks
    told.on_train_begin()
    told.on_epoch_end(0)

    assert dict(vars(Mine)) == before
    assert vars(told.callbacks[0]) == {}
    assert told.callbacks is own
    assert type(own) is list


class Kept:
    """A callback that a script sends to other processes; its base class comes with the test."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None: ...

    def on_train_begin(self, logs: Any = None) -> None: ...

    on_train_end = on_train_begin

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None: ...


def test_callbacks_can_be_copied_and_sent_while_they_are_told(stage: Stage) -> None:
    sent: list[Any] = []

    class Sends(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            sent.extend(pickle.loads(pickle.dumps(kept)) for kept in told.callbacks[:1])
            sent.extend(copy.deepcopy(told.callbacks[:1]))
            sent.append(copy.deepcopy(told).callbacks)

    told = stage.keras.CallbackList([Kept()])
    told.callbacks.append(Sends())
    told.on_epoch_end(0)

    assert [type(one) for one in sent[:2]] == [Kept, Kept]
    assert type(sent[2]) is list
    assert [type(one) for one in sent[2]] == [Kept, Sends]


def test_what_a_callback_adds_to_the_list_is_told_and_stays(stage: Stage) -> None:
    added = stage.keras.History()

    class Adds(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            told.callbacks.append(added)

    told = stage.keras.CallbackList([Adds()])
    told.on_train_begin()

    assert added.epochs == []
    assert told.callbacks[1] is added


def test_a_list_that_a_callback_replaces_is_left(stage: Stage) -> None:
    other: list[Any] = []

    class Replaces(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            told.callbacks = other

    told = stage.keras.CallbackList([Replaces()])
    told.on_train_begin()

    assert told.callbacks is other


def test_a_tuple_of_callbacks_is_left_alone(stage: Stage) -> None:
    told = stage.keras.CallbackList([])
    told.callbacks = (stage.keras.History(),)
    told.on_train_begin()

    assert type(told.callbacks) is tuple
    assert stage.spans == []


def test_an_error_of_a_callback_ends_its_turn_and_is_the_scripts(stage: Stage) -> None:
    class Fails(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            stage.takes(2)
            raise ValueError("the script's own")

    told = stage.keras.CallbackList([Fails(), stage.keras.History()])
    with pytest.raises(ValueError, match="the script's own"):
        told.on_epoch_end(0)

    assert stage.called == [("Fails", 2)]
    assert type(told.callbacks) is list
    assert not stage.timeline.in_a_callback


def test_an_error_of_ours_leaves_keras_as_it_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(stage.timeline, "begins", fails)
    history = stage.keras.History()
    assert stage.model.fit([history], epochs=2) is stage.model
    assert stage.model.fit([history], epochs=3) is stage.model

    assert history.epochs == [0, 1, 2]
    sentence = "after an error of its own, which the script did not see: RuntimeError: ours"
    assert stage.notes == [
        f"Pipediag stopped timing fit {sentence}",
        f"Pipediag stopped timing callbacks {sentence}",
    ]


def test_a_hook_that_cannot_be_asked_for_fails_as_it_would(stage: Stage) -> None:
    class Odd:
        @property
        def on_train_begin(self) -> Any:
            raise LookupError("the script's own")

    told = stage.keras.CallbackList([Odd()])
    with pytest.raises(LookupError, match="the script's own"):
        told.on_train_begin()

    assert type(told.callbacks) is list


def test_the_list_is_put_back_where_all_of_us_steps_aside_meanwhile(stage: Stage) -> None:
    class Forks(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            stage.guard.step_aside()

    told = stage.keras.CallbackList([Forks(), stage.keras.History()])
    told.callbacks[1].on_train_begin()
    told.on_epoch_end(4)

    assert type(told.callbacks) is list
    assert told.callbacks[1].epochs == [4]


def test_methods_keep_their_names_signatures_and_errors(stage: Stage) -> None:
    plain, hooked = toy_keras().Trainer, stage.keras.Trainer

    for method in ("fit", "evaluate", "summary"):
        one, other = getattr(plain, method), getattr(hooked, method)
        assert inspect.signature(one) == inspect.signature(other)
        assert one.__qualname__ == other.__qualname__
        assert one.__doc__ == other.__doc__
    assert not hasattr(hooked.summary, "__wrapped__")
    with pytest.raises(TypeError, match="unexpected keyword"):
        stage.model.evaluate(1, samples=2)
    assert [span.end_ns for span in stage.spans] == [0]
