"""What an arm is built of, and its blocks of steps."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.trying import arms as module
from pipediag.capture.trying.arms import Arms
from pipediag.capture.trying.blocks import EpochWithin, MeasuredSteps, TimedBlock, Warmup
from pipediag.session.edits import MoveLayers, SetModel, SkipCallback
from tests.capture.instruments import training_loop
from tests.capture.trying.conversation import Model, Pipeline, Pipelines, played

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
    return Arms(loop, model, pytest.fail)


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


MS = 1_000_000


def steps_until_warm(step_ms: int) -> int:
    warmup, now, steps = Warmup(0), 0, 0
    while True:
        now += step_ms * MS
        steps += 1
        if warmup.step(now):
            return steps


def measured(step_ms: int, wanted_ms: int) -> MeasuredSteps:
    steps, now = MeasuredSteps(wanted_ms * MS, 0), 0
    while not steps.step((now := now + step_ms * MS), continuous=True):
        pass
    return steps


def test_what_came_between_two_steps_is_left_out() -> None:
    block = MeasuredSteps(100 * MS, last_ns=0)
    block.step(10 * MS, continuous=True)
    block.step(900 * MS, continuous=False)
    block.step(915 * MS, continuous=True)

    assert (block.steps, block.elapsed_ns) == (2, 25 * MS)


def test_a_block_ends_when_the_accelerator_is_done() -> None:
    block = MeasuredSteps(100 * MS, last_ns=0)
    block.step(10 * MS, continuous=True)
    block.settle(14 * MS)

    assert (block.steps, block.elapsed_ns) == (1, 14 * MS)


def timed(first_ms: int, step_ms: int, epoch_steps: int | None) -> TimedBlock:
    """A block of 400 ms, begun at 0, whose first step waits."""
    block = TimedBlock(0, 400 * MS, lambda now_ns: now_ns, epoch_steps)
    now = first_ms * MS
    while not block.step(now, continuous=True):
        now += step_ms * MS
    return block


def test_of_a_pipeline_through_all_epochs_an_end_counts_and_no_start() -> None:
    """Nine steps of 10 ms and one that waits for what comes of an epoch's end."""
    block, now = EpochWithin(10, lambda now_ns: now_ns + 1), 900 * MS
    for step_ms in (0, *[10] * 4, 210, *[10] * 4):
        now += step_ms * MS
        assert not block.step(now, continuous=True)
    assert block.step(now + 10 * MS, continuous=False)

    assert (block.steps, block.elapsed_ns, block.first_ns) == (10, 300 * MS, 30 * MS)
    assert not block.warms_up


@pytest.mark.parametrize(("step_ms", "steps"), [(2, 150), (400, 3), (2500, 1)])
def test_a_warm_up_takes_some_time_and_some_steps(step_ms: int, steps: int) -> None:
    assert steps_until_warm(step_ms) == steps


@pytest.mark.parametrize(
    ("step_ms", "wanted_ms", "steps"),
    [(2, 400, 200), (300, 400, 5), (2000, 400, 2), (2000, 10_000, 5)],
)
def test_a_block_lasts_as_long_as_asked_and_some_steps(
    step_ms: int, wanted_ms: int, steps: int
) -> None:
    assert measured(step_ms, wanted_ms).steps == steps


@pytest.mark.parametrize(
    ("first_ms", "step_ms", "epoch_steps", "steps"),
    [(500, 5, 29, 29), (3_000, 5, 1_000, 80), (10, 10, 50, 50), (290, 10, None, 40)],
)
def test_a_block_counts_a_short_epoch_whole_and_of_others_what_follows_a_warm_up(
    first_ms: int, step_ms: int, epoch_steps: int | None, steps: int
) -> None:
    block = timed(first_ms, step_ms, epoch_steps)
    assert (block.first_ns, block.steps, block.elapsed_ns) == (
        first_ms * MS,
        steps,
        steps * step_ms * MS,
    )
