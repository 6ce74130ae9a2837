"""Keras' `predict` within the steps of loops that an iterator feeds, told by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pipediag.capture.loops.loop import Consumer
from pipediag.capture.watching import conductor as module
from pipediag.session.timeline import Span
from tests.capture.watching.conductors import Stage


@pytest.fixture
def stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: stage.now))
    return stage


def call(stage: Stage, consumer: Consumer, line: int = 7) -> None:
    """One of Keras' calls, of one batch, from its begin to its end."""
    began = stage.now
    stage.step(consumer)
    stage.conductor.exhausted(consumer)
    stage.conductor.epoch_ended()
    stage.conductor.evaluated(
        Span(1, "evaluation", began, stage.now, consumer.loop.record.role, "gan.py", line)
    )


def test_a_prediction_in_each_step_is_a_part_of_it(stage: Stage) -> None:
    real, predict = stage.consumer(), stage.consumer("predict", "keras")
    for _ in range(6):
        stage.step(real)
        call(stage, predict)
        stage.updates.note()

    record = real.loop.record
    assert (record.role, record.steps, record.elapsed_ns) == ("training", 6, 4 * 20)
    assert not predict.loop.record.updates_variables
    (nested,) = record.nested
    assert (nested.what, nested.line, nested.count, nested.elapsed_ns) == ("predict", 7, 5, 50)


def test_of_a_fit_too_as_of_a_callback(stage: Stage) -> None:
    fit, predict = stage.consumer("training", "keras"), stage.consumer("predict", "keras")
    for _ in range(6):
        stage.step(fit, trains=True)
        call(stage, predict)

    assert fit.loop.record.elapsed_ns == 4 * 20
    assert fit.loop.diagnosis.seams == 1


def test_an_evaluation_after_each_epoch_is_in_none_of_its_steps(stage: Stage) -> None:
    real, predict = stage.consumer(), stage.consumer("predict", "keras")
    evaluate = stage.consumer("evaluate", "keras")
    for _ in range(4):
        for _ in range(3):
            stage.step(real, trains=True)
            call(stage, predict)
        stage.conductor.exhausted(real)
        call(stage, evaluate)
        call(stage, predict)  # on samples to be looked at

    record = real.loop.record
    assert record.elapsed_ns == (1 + 3 * 2) * 20  # the first prediction was not expected
    assert record.warm_steps > 0
    assert evaluate.loop.record.role == "evaluate"
    assert {one.what for one in record.nested} == {"predict"}


def test_epochs_of_a_single_step_do_not_take_their_evaluation_in(stage: Stage) -> None:
    fit, evaluate = stage.consumer("training", "keras"), stage.consumer("evaluate", "keras")
    for _ in range(5):
        stage.step(fit, trains=True)
        stage.conductor.epoch_ended()
        call(stage, evaluate)

    assert fit.loop.record.elapsed_ns == 0
    assert fit.loop.record.nested == []


def test_a_loop_that_only_validates_is_interrupted_by_its_predictions(stage: Stage) -> None:
    validation, predict = stage.consumer(), stage.consumer("predict", "keras")
    for _ in range(5):
        stage.step(validation)
        call(stage, predict)

    assert validation.loop.record.elapsed_ns == 0
    assert validation.loop.record.nested == []
