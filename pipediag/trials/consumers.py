"""How a block's throughput is read off, by what took the batches."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.trials import Basis, Consumer
from pipediag.trials.arms import Arm, Block, Executor


def step_ms(block: Block) -> float:
    """Mean time per batch of a block."""
    return block.elapsed_ns / 1e6 / block.batches


@dataclass(frozen=True)
class TrainingLoop:
    """The script's own loop takes the batches."""

    consumer: Consumer = "training"
    basis: Basis = "step"
    caveat: str | None = None

    def run(self, executor: Executor, arm: Arm, seconds: float) -> Block:
        """One block of the loop."""
        return executor.block(arm, seconds)

    def step_ms(self, block: Block) -> float:
        """Mean step."""
        return step_ms(block)

    def examples_per_s(self, block: Block) -> float:
        """Of steps that follow one another."""
        return block.examples_per_s


@dataclass(frozen=True)
class TrainingEpochs:
    """The script's own loop, of which a whole epoch counts: the wait for its first batch, too."""

    examples: float
    """Of one epoch."""
    consumer: Consumer = "training"
    basis: Basis = "epoch"
    caveat: str | None = None

    def run(self, executor: Executor, arm: Arm, seconds: float) -> Block:
        """One block of the loop, within an epoch."""
        return executor.block(arm, seconds, self.examples)

    def step_ms(self, block: Block) -> float:
        """Mean step, without that wait."""
        return step_ms(block)

    def examples_per_s(self, block: Block) -> float:
        """Of an epoch: its first step as it was, and as many like the others as are left."""
        first = block.first_batches * block.examples / block.batches
        left_s = max(0.0, self.examples - first) / block.examples_per_s
        return self.examples / ((block.first_ns or 0) / 1e9 + left_s)


@dataclass(frozen=True)
class PulledPipeline:
    """The loop can't be driven: batches are pulled, and the measured consumer is put beside them.

    Input and consumer overlap, so a step takes as long as the slower of the two.
    """

    consumer_ms: float
    """What the rest of a step takes; 0 where that is not known."""
    why: str = "The training loop can't be run by itself"
    """Why no step was made, as the start of a sentence."""
    consumer: Consumer = "pipeline alone"
    basis: Basis = "pipeline"

    @property
    def caveat(self) -> str:
        """What such a measurement leaves out."""
        if not self.consumer_ms:
            return (
                f"{self.why}: the pipeline was measured alone, and what the rest of a step takes "
                "is not known."
            )
        return (
            f"{self.why}: the pipeline was measured alone, and a step taken as the longer of a "
            f"batch and the {self.consumer_ms:.1f} ms that the rest of the step took."
        )

    def run(self, executor: Executor, arm: Arm, seconds: float) -> Block:
        """One block of batches alone."""
        return executor.pull(arm, seconds)

    def step_ms(self, block: Block) -> float:
        """What a step would take."""
        return max(self.consumer_ms, step_ms(block))

    def examples_per_s(self, block: Block) -> float:
        """What steps would come to."""
        return block.examples / block.batches / self.step_ms(block) * 1e3


TakenBy = TrainingLoop | TrainingEpochs | PulledPipeline
"""Each knows how to run a block, and what its throughput is."""
