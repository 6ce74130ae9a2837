from __future__ import annotations

import pytest

from pipediag.runner.asking import ChildGone
from pipediag.runner.child_executor import BLOCK_LIMIT_S, PREPARE_LIMIT_S, ChildExecutor
from pipediag.session.edits import Remove, SetOptions
from pipediag.session.messages import (
    Answer,
    ArmRefused,
    BlockRun,
    Command,
    Prepare,
    Prepared,
    Pull,
    RunBlock,
)
from pipediag.trials.arms import Arm, ArmRefusedError, Block, ExecutorLostError, Preparation

ARM = Arm("without", (Remove("op2"),), "equal")


class Child:
    """Gives the answer it was made with."""

    def __init__(self, answer: Answer | ChildGone) -> None:
        self.asked: list[tuple[Command, float]] = []
        self._answer = answer

    def __call__(self, command: Command, limit_s: float) -> Answer:
        self.asked.append((command, limit_s))
        if isinstance(self._answer, ChildGone):
            raise self._answer
        return self._answer


def test_an_arm_is_prepared_with_what_all_arms_share() -> None:
    child = Child(Prepared("without", first_ns=7))
    shared = SetOptions({"deterministic": True})

    prepared = ChildExecutor(child, (shared,), ["Of a part."]).prepare(ARM)
    assert prepared == Preparation(["Of a part."], first_ns=7)
    assert child.asked == [(Prepare("without", (shared, Remove("op2")), "equal"), PREPARE_LIMIT_S)]


def test_a_block_of_the_loop_and_one_of_the_pipeline_are_asked_for() -> None:
    child = Child(BlockRun("without", 5, 160, 7))
    executor = ChildExecutor(child)

    assert executor.block(ARM, 0.4) == executor.pull(ARM, 0.3) == Block(160, 5, 7)
    assert child.asked == [
        (RunBlock("without", 0.4), BLOCK_LIMIT_S + 4),
        (Pull("without", 0.3), BLOCK_LIMIT_S + 3),
    ]


@pytest.mark.parametrize(("epoch", "through"), [(640.0, True), (None, False)])
def test_a_pipeline_through_all_epochs_is_one_where_epochs_count(
    epoch: float | None, through: bool
) -> None:
    child = Child(BlockRun("through", 5, 160, 7))
    ChildExecutor(child).block(Arm("through", runs_through=True), 0.4, epoch)
    ((asked, _),) = child.asked
    assert asked == RunBlock("through", 0.4, epoch, runs_through=through)


def test_what_the_child_refuses_is_refused_with_its_reason() -> None:
    refusing = ChildExecutor(Child(ArmRefused("without", "It can't be cached.")))

    with pytest.raises(ArmRefusedError, match="can't be cached"):
        refusing.prepare(ARM)
    with pytest.raises(ArmRefusedError, match="can't be cached"):
        refusing.block(ARM, 0.4)


def test_a_child_that_is_gone_is_lost() -> None:
    with pytest.raises(ExecutorLostError, match="it was killed"):
        ChildExecutor(Child(ChildGone("it was killed."))).block(ARM, 0.4)
