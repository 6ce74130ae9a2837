"""Steps of one model under a full softmax and under a sampled one, block by block.

    python -m benchmarks.softmax_arms PLAN

Both arms live in this process and take turns in random order. Prints a JSON object a block.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

from benchmarks.update_arms import (
    BATCHES,
    framework,
    time_in_turns,
)

SOFTMAXES = ("full", "sampled")
BATCH, CONTEXT = 128, 4
RATE = 0.1


@dataclass(frozen=True)
class SoftmaxPlan:
    """A vocabulary, and how long a step over it is timed."""

    classes: int
    dim: int
    drawn: int
    """Classes that the sampled one draws."""
    rounds: int
    block_s: float


def main(plan_json: str) -> None:
    """Time both arms of the plan."""
    plan = SoftmaxPlan(**json.loads(plan_json))
    print(json.dumps(asdict(framework())))
    steps = {arm: training_step(plan, arm) for arm in SOFTMAXES}
    time_in_turns(steps, plan.rounds, plan.block_s)


def training_step(plan: SoftmaxPlan, arm: str) -> Callable[[], Any]:
    """A step of plain gradient descent, which writes rows alone where a gradient comes as rows."""
    import numpy as np
    import tensorflow as tf

    shape = (plan.classes, plan.dim)
    table, weights = (tf.Variable(tf.random.normal(shape, stddev=0.05)) for _ in range(2))
    biases = tf.Variable(tf.zeros(plan.classes))
    variables = [table, weights, biases]
    drawn = np.random.default_rng(0).zipf(1.2, (BATCHES, BATCH, CONTEXT)) % plan.classes
    batches = cycle([tf.constant(batch, "int64") for batch in drawn])

    def losses(vectors: Any, targets: Any) -> Any:
        if arm == "sampled":
            return tf.nn.sampled_softmax_loss(
                weights, biases, targets[:, None], vectors, plan.drawn, plan.classes
            )
        logits = tf.matmul(vectors, weights, transpose_b=True) + biases
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)

    @tf.function
    def step(words: Any) -> Any:
        with tf.GradientTape() as tape:
            vectors = tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1)
            loss = tf.reduce_mean(losses(vectors, words[:, 0]))
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(RATE * gradient.values, gradient.indices))
            else:
                variable.assign_sub(RATE * gradient)
        return loss

    return lambda: step(next(batches))


if __name__ == "__main__":
    main(*sys.argv[1:])
