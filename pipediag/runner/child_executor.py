"""The child, whose loop waits, as what trials run their arms in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipediag.runner.asking import Ask, ChildGone
from pipediag.session.edits import Change
from pipediag.session.messages import (
    ArmRefused,
    BlockRun,
    Command,
    Prepare,
    Prepared,
    Pull,
    RunBlock,
)
from pipediag.trials.arms import Arm, ArmRefusedError, Block, ExecutorLostError, Preparation

PREPARE_LIMIT_S = 120.0
"""A first step may trace and compile a large model, and a cache is filled before it."""

BLOCK_LIMIT_S = 60.0

Expected = TypeVar("Expected", Prepared, BlockRun)


@dataclass
class ChildExecutor:
    """Asks the child for arms and blocks."""

    ask: Ask
    common: tuple[Change, ...] = ()
    """Changes that all arms share, the base too."""
    caveats: Sequence[str] = ()

    def prepare(self, arm: Arm) -> Preparation:
        changes = (*self.common, *arm.changes)
        asked = Prepare(arm.name, changes, arm.check)
        answer = self._answer(asked, Prepared, PREPARE_LIMIT_S)
        return Preparation(list(self.caveats), answer.first_ns)

    def block(self, arm: Arm, seconds: float, epoch_examples: float | None = None) -> Block:
        through = epoch_examples is not None and arm.runs_through
        return self._block(RunBlock(arm.name, seconds, epoch_examples, through))

    def pull(self, arm: Arm, seconds: float) -> Block:
        return self._block(Pull(arm.name, seconds))

    def _block(self, command: RunBlock | Pull) -> Block:
        answer = self._answer(command, BlockRun, BLOCK_LIMIT_S + 10 * command.seconds)
        return Block(
            answer.examples,
            answer.batches,
            answer.elapsed_ns,
            answer.first_ns,
            answer.first_batches,
        )

    def _answer(self, command: Command, expected: type[Expected], limit_s: float) -> Expected:
        try:
            answer = self.ask(command, limit_s)
        except ChildGone as gone:
            raise ExecutorLostError(str(gone)) from None
        if isinstance(answer, ArmRefused):
            raise ArmRefusedError(answer.reason)
        assert isinstance(answer, expected)
        return answer
