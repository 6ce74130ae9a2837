"""What the rounds of one arm come to: the speed-up of a step, and what it is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from pipediag.session.record import Interval
from pipediag.session.trials import Basis
from pipediag.trials.bench import Ratio
from pipediag.trials.consumers import TakenBy
from pipediag.trials.statistics import Decision, Estimate, estimate, look


class Figures(TypedDict):
    """The fields that a trial and a combination share."""

    speedup: float
    ci95: Interval
    blocks: int
    basis: Basis
    pipeline_speedup: float | None
    pipeline_ci95: Interval | None


@dataclass(frozen=True)
class Ratios:
    """One ratio for each round, in the order of the rounds."""

    rounds: tuple[Ratio, ...] = ()

    def __len__(self) -> int:
        return len(self.rounds)

    def with_round(self, ratio: Ratio) -> Ratios:
        """These and one more."""
        return Ratios((*self.rounds, ratio))

    def look(self, *, last: bool = False) -> Decision | None:
        """What the step's ratios decide after these rounds; see `statistics.look`."""
        return look(self._steps(), last=last)

    def figures(self, taken_by: TakenBy, step: Estimate) -> Figures:
        """The estimate in a session's words; beside it the pipeline's own where it is all there
        is."""
        alone = estimate(self._pulled()) if taken_by.basis == "pipeline" else None
        return Figures(
            speedup=round(step.value, 4),
            ci95=step.interval,
            blocks=step.rounds,
            basis=taken_by.basis,
            pipeline_speedup=round(alone.value, 4) if alone else None,
            pipeline_ci95=alone.interval if alone else None,
        )

    def estimate(self, alpha: float = 0.05) -> Estimate:
        """Of the step's speed-up."""
        return estimate(self._steps(), alpha)

    def _steps(self) -> Sequence[float]:
        return [ratio.step for ratio in self.rounds]

    def _pulled(self) -> Sequence[float]:
        return [ratio.pulled for ratio in self.rounds]
