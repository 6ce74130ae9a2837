"""The pipeline as written without its consumer: what it could deliver if nothing else ran."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.session.trials import PipelineAlone
from pipediag.trials.arms import ArmRefusedError, Block
from pipediag.trials.bench import BASE_ARM, Bench
from pipediag.trials.consumers import PulledPipeline, step_ms
from pipediag.trials.statistics import FEWEST_ROUNDS, estimate

PULL_S = 0.3
MOST_PULLS = 5

SHARE = 0.15
"""Of the time left: edits go first."""


class BasePulls:
    """Found once, when there is time for it."""

    def __init__(self, bench: Bench) -> None:
        self.found: PipelineAlone | None = None
        self.missing: str | None = None
        self._bench = bench

    def pull(self, share: float) -> None:
        """Pull batches if that share of the time left allows enough pulls.

        Raises:
            LostError: the executor is gone.
        """
        if self.found or self.missing or isinstance(self._bench.taken_by, PulledPipeline):
            return
        # A pull starts and warms up as a block of the loop does, and its batches come no slower.
        cost = self._bench.cost_s([BASE_ARM])
        pulls = min(MOST_PULLS, int(share * self._bench.left_s() / cost)) if cost else MOST_PULLS
        if pulls < FEWEST_ROUNDS:
            return
        try:
            self.found = _time_per_batch([self._bench.pull_base(PULL_S) for _ in range(pulls)])
        except ArmRefusedError as error:
            self.missing = str(error)

    def close(self, reason: str) -> None:
        """Nothing more is pulled. Where the trials themselves only pulled, their blocks serve."""
        if self.found or self.missing:
            return
        blocks = self._bench.base_blocks
        if isinstance(self._bench.taken_by, PulledPipeline) and len(blocks) >= FEWEST_ROUNDS:
            self.found = _time_per_batch(blocks)
        else:
            self.missing = reason


def _time_per_batch(blocks: Sequence[Block]) -> PipelineAlone:
    found = estimate([step_ms(block) for block in blocks])
    return PipelineAlone(step_ms=round(found.value, 4), ci95_ms=found.interval, blocks=found.rounds)
