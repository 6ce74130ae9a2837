from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.trying import arms as module
from pipediag.capture.trying.arms import Arms
from pipediag.session.edits import MoveLayers, SetModel, SkipCallback
from tests.capture.instruments import training_loop
from tests.capture.trying.pipelines import Model, Pipeline, Pipelines, played

COMPILED = SetModel({"steps_per_execution": 8})


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch)


def arms_of(
    dataset: Any = None,
    **record: Any,
) -> Arms:
    loop = training_loop(**record)
    loop.dataset = dataset or Pipeline()
    model: Any = Model()
    loop.runtime = Pipelines()
    return Arms(loop, model)


def test_an_arm_knows_its_batches() -> None:
    arms = arms_of(batches_per_call=2)
    assert arms.base is None
    arms.build("base", (), None)
    arms.build("compiled", (COMPILED,), None)

    assert arms.base is arms["base"]
    assert (arms["base"].rows, arms["base"].settings, arms["base"].batches_per_step) == (4, {}, 2)
    assert arms["compiled"].batches_per_step == 8
    assert arms["compiled"].dataset.changes == (COMPILED,)


def test_batches_without_rows_have_those_that_the_loop_was_seen_to_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Pipeline, "rows", None)
    arms, unknown = arms_of(batch_size=32), arms_of(batch_size=None)
    arms.build("base", (), None)
    unknown.build("base", (), None)

    assert (arms["base"].rows, unknown["base"].rows) == (32, 1)


def test_the_pipeline_behind_a_distributed_one_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt: list[Any] = []

    def rebuild(dataset: Any, *_: Any, **__: Any) -> Pipeline:
        rebuilt.append(dataset)
        return Pipeline()

    monkeypatch.setattr(module, "rebuild", rebuild)
    arms_of(SimpleNamespace(_original_dataset="inner")).build("base", (), None)

    assert rebuilt == ["inner"]


@pytest.mark.parametrize("kind", ["eager", "tf_function"])
def test_a_loop_of_the_scripts_own_gets_no_batches_of_another_size(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    arms = arms_of(kind=kind)
    arms.build("base", (), None)
    monkeypatch.setattr(Pipeline, "rows", 8)
    with pytest.raises(NotReplayableError, match="size of its batches"):
        arms.build("larger", (), None)


WITHOUT = SkipCallback("Logger", "train.py", 30)


class Callbacks:
    """What a trainer calls beside its steps."""


class Named:
    """A trainer that knows its callbacks by name."""

    def callbacks_named(self, callbacks: Callbacks, skipped: Any) -> list[Any]:
        return [(callbacks, change.callback) for change in skipped]


def test_an_arm_knows_which_callbacks_its_steps_are_made_without() -> None:
    arms, callbacks = arms_of(), Callbacks()
    trainer: Any = Named()
    arms._loop.trainer, arms._loop.callbacks = trainer, weakref.ref(callbacks)
    arms.build("base", (), None)
    arms.build("without", (WITHOUT,), None)

    assert arms["base"].skipped == ()
    assert arms["without"].skipped == [(callbacks, "Logger")]


@pytest.mark.parametrize(
    ("trainer", "reason"), [(None, "callbacks of a Keras `fit`"), (Named(), "is over")]
)
def test_callbacks_that_can_not_be_left_out_are_refused_before_anything_is_built(
    trainer: Any, reason: str
) -> None:
    arms = arms_of()
    arms._loop.trainer = trainer
    arms._loop.callbacks = weakref.ref(Callbacks())
    with pytest.raises(NotReplayableError, match=reason):
        arms.build("without", (WITHOUT,), None)

    assert Pipeline.made == 0


MOVED = MoveLayers(("words",), "op1")


def test_an_arm_knows_which_layers_its_pipeline_has(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def rebuild(*_: Any, layers: Any, **__: Any) -> Pipeline:
        given.append(layers)
        return Pipeline()

    monkeypatch.setattr(module, "rebuild", rebuild)
    arms = arms_of()
    arms.build("base", (), None)
    arms.build("moved", (MOVED,), None)

    assert (arms["base"].moved, arms["moved"].moved) == ((), ("words",))
    assert given == [None, "what words does"]
