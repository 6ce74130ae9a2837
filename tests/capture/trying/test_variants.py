"""What a variant is built of, and its blocks of steps."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.trying import protocol as module
from pipediag.capture.trying.protocol import Step, Steps, Timed, Variants, timed
from pipediag.session.edits import SetModel, SetParameters
from pipediag.session.messages import Prepare
from tests.capture.instruments import training_loop
from tests.capture.trying.conversation import Model, Pipeline, Pipelines, played

COMPILED = SetModel({"steps_per_execution": 8})
LARGER = SetParameters("batch:1", {"batch_size": 128})


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch)


def variants_of(dataset: Any = None, **record: Any) -> Variants:
    loop = training_loop(**record)
    loop.dataset = dataset or Pipeline()
    model: Any = Model()
    loop.runtime = Pipelines()
    return Variants(loop, model, pytest.fail)


def test_batches_without_rows_have_those_that_the_loop_was_seen_to_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Pipeline, "rows", None)
    variants, unknown = variants_of(batch_size=32), variants_of(batch_size=None)
    variants.build(Prepare("base", (), None))
    unknown.build(Prepare("base", (), None))

    assert (variants.built["base"].rows, unknown.built["base"].rows) == (32, 1)


def test_the_pipeline_behind_a_distributed_one_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt: list[Any] = []

    def rebuild(dataset: Any, *_: Any, **__: Any) -> Pipeline:
        rebuilt.append(dataset)
        return Pipeline()

    monkeypatch.setattr(module, "rebuild", rebuild)
    variants_of(SimpleNamespace(_original_dataset="inner")).build(Prepare("base", (), None))

    assert rebuilt == ["inner"]


@pytest.mark.parametrize(
    ("batch_size", "drawn"), [(32, [8, 32, 8]), (32, [32, 8, 32]), (None, [32, 8, 8])]
)
def test_a_smaller_batch_that_comes_first_is_not_taken_for_all_batches(
    monkeypatch: pytest.MonkeyPatch, batch_size: int | None, drawn: list[int]
) -> None:
    variants = variants_of(kind="keras", batch_size=batch_size)
    for rows, changes in zip(drawn, [(), (COMPILED,), (LARGER,)], strict=True):
        monkeypatch.setattr(Pipeline, "rows", rows)
        name = "edit" if changes else "base"
        variants.build(Prepare(name, changes, None))
        assert variants.built[name].rows == (128 if LARGER in changes else 32)


@pytest.mark.parametrize("kind", ["eager", "tf_function"])
def test_a_loop_of_the_scripts_own_gets_no_batches_of_another_size(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    variants = variants_of(kind=kind)
    variants.build(Prepare("base", (), None))
    with pytest.raises(NotReplayableError, match="size of its batches"):
        variants.build(Prepare("larger", (LARGER,), None))
    monkeypatch.setattr(Pipeline, "rows", 3)  # the last batch of the data
    variants.build(Prepare("other", (), None))


MS = 1_000_000


def settled(now_ns: int) -> int:
    """An accelerator is through 4 ms after a step."""
    return now_ns + 4 * MS


def driven(block: Steps[Timed], ends_ms: Iterable[float], *apart: int) -> tuple[int, Timed]:
    """Give it steps that end at these times, and return how many it took, and what it found.

    Those of the numbers in `apart` had something else in between.
    """
    next(block)
    for number, now_ms in enumerate(ends_ms, 1):
        try:
            block.send(Step(int(now_ms * MS), continuous=number not in apart))
        except StopIteration as over:
            return number, over.value
    raise AssertionError("It goes on.")


def block_of(wanted_ms: int, epoch_steps: int | None = None) -> Steps[Timed]:
    return timed(lambda: 0, wanted_ms * MS, lambda now_ns: now_ns, epoch_steps)


def test_what_came_between_two_steps_is_left_out() -> None:
    """Three steps of 200 ms warm up, and the next ones count."""
    ends_ms = [200, 400, 600, 700, 9_000, 9_100, 9_200, 9_300, 9_400]
    assert driven(block_of(400), ends_ms, 5) == (9, Timed(5, 500 * MS, 200 * MS))


def test_a_block_ends_when_the_accelerator_is_done() -> None:
    block = timed(lambda: 0, 400 * MS, settled)
    # It begins as late, and the first step ended later.
    ends_ms = [200, 400, 600, *range(700, 1200, 100)]
    assert driven(block, ends_ms) == (8, Timed(5, 500 * MS, 204 * MS))


@pytest.mark.parametrize(
    ("step_ms", "wanted_ms", "warm", "steps"),
    [(2, 400, 150, 200), (400, 400, 3, 5), (2500, 400, 1, 2), (2000, 10_000, 1, 5)],
)
def test_warm_up_and_block_take_some_time_and_some_steps(
    step_ms: int, wanted_ms: int, warm: int, steps: int
) -> None:
    taken, found = driven(block_of(wanted_ms), count(step_ms, step_ms))
    assert (taken - found.steps, found.steps) == (warm, steps)


@pytest.mark.parametrize(
    ("first_ms", "step_ms", "epoch_steps", "steps"),
    [(500, 5, 29, 29), (3_000, 5, 1_000, 80), (10, 10, 50, 50), (290, 10, None, 40)],
)
def test_a_block_counts_a_short_epoch_whole_and_of_others_what_follows_a_warm_up(
    first_ms: int, step_ms: int, epoch_steps: int | None, steps: int
) -> None:
    _, found = driven(block_of(400, epoch_steps), count(first_ms, step_ms))
    assert found == Timed(steps, steps * step_ms * MS, first_ms * MS)
