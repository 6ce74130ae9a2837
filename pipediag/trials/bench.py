"""Runs blocks in rounds, keeps what they gave, and knows what a round costs in time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from pipediag.session.trials import TrialBlock
from pipediag.trials.arms import (
    Arm,
    ArmRefusedError,
    Block,
    Executor,
    ExecutorLostError,
    Preparation,
)
from pipediag.trials.consumers import TakenBy
from pipediag.trials.events import OnEvent, TrialEvent, Trying
from pipediag.trials.first_calls import ANEW_ARM, ANEW_LABEL, FirstCalls, Once
from pipediag.vocabulary import BASE

BLOCK_S = 0.4
"""Measured part of a block: long against a step, short against the drift of a machine. The process
that runs it makes it longer where that would be fewer than five steps."""

BASE_ARM = Arm(BASE)
BASE_LABEL = "the pipeline as written"
_Answer = TypeVar("_Answer")


class BaseRefusedError(Exception):
    """The pipeline as written can't be run, so there is nothing to compare with."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"The pipeline as written can't be run for a trial: {reason}")


class LostError(Exception):
    """The executor is gone; says in which arm, and with what reason."""

    def __init__(self, arm: str, label: str, reason: str) -> None:
        self.arm = arm
        self.sentence = f"The trials ended while trying {label}: {reason}"
        super().__init__(self.sentence)


@dataclass(frozen=True)
class Ratio:
    """What one round says of two arms."""

    step: float
    pulled: float
    """The same as `step` where steps were measured."""


@dataclass(frozen=True)
class Round:
    """Examples per second by arm; arms that failed on the way have a reason instead."""

    rates: dict[str, float]
    """Of a step or an epoch, as what takes the batches reads it."""
    pulled: dict[str, float]
    """As they came, whatever a step leaves of that."""
    refused: dict[str, str]

    def ratio(self, arm: str, to: str) -> Ratio:
        """Throughput of one arm divided by that of another."""
        return Ratio(self.rates[arm] / self.rates[to], self.pulled[arm] / self.pulled[to])


class Bench:
    """One executor, one clock, one budget."""

    def __init__(
        self,
        executor: Executor,
        taken_by: TakenBy,
        budget_s: float,
        clock: Callable[[], float],
        on_event: OnEvent,
        seed: int,
        began_s: float | None = None,
        first_calls: FirstCalls | None = None,
    ) -> None:
        self.executor = executor
        self.taken_by = taken_by
        self.budget_s = budget_s
        self.blocks: list[TrialBlock] = []
        self.base_blocks: list[Block] = []
        self._clock = clock
        self._on_event = on_event
        self._order = random.Random(seed)
        self._started = clock() if began_s is None else began_s
        self._rounds = 0
        self._walls: dict[str, float] = {}
        self._base_built_s = 0.0
        self._first_calls = first_calls or FirstCalls()
        self._made_anew = False
        self._labels: dict[str, str] = {BASE: BASE_LABEL}
        self.lost: LostError | None = None

    def used_s(self) -> float:
        """Time since the budget began to count."""
        return self._clock() - self._started

    def left_s(self) -> float:
        """Time until the budget ends; negative when it is overdrawn."""
        return self.budget_s - self.used_s()

    def tell(self, event: TrialEvent) -> None:
        """Pass an event on."""
        self._on_event(event)

    def prepare(self, arm: Arm, label: str) -> Preparation:
        """Have an arm built and checked.

        Raises:
            ArmRefusedError: it can't be tried.
            LostError: the executor is gone.
        """
        self._labels[arm.name] = label
        self._announce(arm)
        preparation = self._guarded(arm, lambda: self.executor.prepare(arm))
        self._first_calls.note(arm, preparation)
        return preparation

    def make_base_anew(self) -> None:
        """Have the step as written traced once more, for what that takes; once, and no more where
        it is refused.

        Raises:
            LostError: the executor is gone.
        """
        if self._made_anew:
            return
        self._made_anew = True
        with suppress(ArmRefusedError):
            self.prepare(ANEW_ARM, ANEW_LABEL)

    def once(self, arm: Arm) -> Once:
        """What the run takes once more with the arm, as far as that was measured."""
        return self._first_calls.once(arm, self.blocks)

    def prepare_base(self) -> list[str]:
        """Have the pipeline as written built, and run one block of it that enters no ratio.

        The block tells what a round will cost. Returns what the replay leaves out.

        Raises:
            BaseRefusedError: it can't be run.
            LostError: the executor is gone.
        """
        try:
            begin = self._clock()
            left_out = self.prepare(BASE_ARM, BASE_LABEL).left_out
            self._base_built_s = self._clock() - begin
            self.block(BASE_ARM)
        except ArmRefusedError as error:
            raise BaseRefusedError(error) from error
        return left_out

    def round(self, arms: Sequence[Arm], seconds: float = BLOCK_S) -> Round:
        """One block of so many seconds of each arm, in random order.

        Raises:
            BaseRefusedError: the base failed.
            LostError: the executor is gone; the round is lost with it.
        """
        self._rounds += 1
        rates: dict[str, float] = {}
        pulled: dict[str, float] = {}
        refused: dict[str, str] = {}
        for arm in self._order.sample(list(arms), len(arms)):
            try:
                block = self.block(arm, seconds)
            except ArmRefusedError as error:
                if arm.name == BASE:
                    raise BaseRefusedError(error) from error
                refused[arm.name] = str(error)
            else:
                rates[arm.name] = self.taken_by.examples_per_s(block)
                pulled[arm.name] = block.examples_per_s
        return Round(rates, pulled, refused)

    def block(self, arm: Arm, seconds: float = BLOCK_S) -> Block:
        """One block, kept in the record; its whole duration, warm-up and all, is the arm's cost.

        Raises:
            ArmRefusedError: the arm failed on the way.
            LostError: the executor is gone.
        """
        self._announce(arm)
        begin = self._clock()
        block = self._guarded(arm, lambda: self.taken_by.run(self.executor, arm, seconds))
        self._walls[arm.name] = self._clock() - begin
        since_began_ms = self.used_s() * 1e3 - block.elapsed_ns / 1e6
        _refuse_empty(block)
        if arm.name == BASE:
            self.base_blocks.append(block)
        self.blocks.append(
            TrialBlock(
                arm=arm.name,
                round=self._rounds,
                examples_per_s=round(block.examples_per_s, 3),
                batches=block.batches,
                duration_ms=round(block.elapsed_ns / 1e6, 3),
                first_step_ms=None if block.first_ns is None else round(block.first_ns / 1e6, 3),
                since_began_ms=round(since_began_ms, 3),
            )
        )
        return block

    def pull_base(self, seconds: float) -> Block:
        """A block of the base without its consumer; it is no part of a round.

        Raises:
            ArmRefusedError: it failed on the way.
            LostError: the executor is gone.
        """
        block = self._guarded(BASE_ARM, lambda: self.executor.pull(BASE_ARM, seconds))
        _refuse_empty(block)
        return block

    def cost_s(self, arms: Iterable[Arm]) -> float:
        """What a round of these arms takes, by their last blocks; an unknown one as the base."""
        return sum(self._walls.get(arm.name, self._walls.get(BASE, BLOCK_S)) for arm in arms)

    def building_s(self) -> float:
        """What it takes to build an arm: as long as the base took, whose caches were filled too."""
        return self._base_built_s

    def _announce(self, arm: Arm) -> None:
        self.tell(Trying(self._labels[arm.name], left_s=max(0.0, self.left_s())))

    def _guarded(self, arm: Arm, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except ExecutorLostError as error:
            self.lost = LostError(arm.name, self._labels[arm.name], str(error))
            raise self.lost from error


def _refuse_empty(block: Block) -> None:
    if block.batches <= 0 or block.examples <= 0 or block.elapsed_ns <= 0:
        raise ArmRefusedError("It delivered no batch while it was timed.")
