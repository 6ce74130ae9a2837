"""Steps of one model that looks up all ids of a batch, and each different one once, block by block.

    python -m benchmarks.duplicate_arms PLAN

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

LOOKUPS = ("all", "different")
BATCH, LENGTH = 256, 100
RATE = 0.1


@dataclass(frozen=True)
class DuplicatesPlan:
    """A table, how ids are drawn, and how long a step is timed."""

    rows: int
    dim: int
    zipf: float
    """Exponent of the distribution: the larger, the more often the frequent ids come."""
    update: str
    """`sgd`, or `lazy` for LazyAdam."""
    rounds: int
    block_s: float


def main(plan_json: str) -> None:
    """Time both arms of the plan, after a line on the machine and one on the ids."""
    plan = DuplicatesPlan(**json.loads(plan_json))
    print(json.dumps(asdict(framework())))
    ids = drawn(plan)
    print(json.dumps(repeated_percent(ids)))
    steps = {arm: training_step(plan, arm, ids) for arm in LOOKUPS}
    time_in_turns(steps, plan.rounds, plan.block_s)


def drawn(plan: DuplicatesPlan) -> Any:
    """Batches of ids by Zipf's law."""
    import numpy as np

    ids = np.random.default_rng(0).zipf(plan.zipf, (BATCHES, BATCH, LENGTH)) % plan.rows
    return ids.astype("int32")


def repeated_percent(batches: Any) -> float:
    """Lookups by an id that its batch has already, of all of them."""
    import numpy as np

    different = sum(len(np.unique(batch)) for batch in batches)
    return float(100.0 * (1.0 - different / batches.size))


def training_step(plan: DuplicatesPlan, arm: str, ids: Any) -> Callable[[], Any]:
    """A step that writes the rows of the batch alone."""
    import tensorflow as tf

    from pipediag.optimizers import LazyAdam

    table = tf.Variable(tf.random.normal((plan.rows, plan.dim), stddev=0.05))
    adam = LazyAdam() if plan.update == "lazy" else None
    batches = cycle([tf.constant(batch) for batch in ids])

    def vectors_of(words: Any) -> Any:
        if arm == "all":
            return tf.nn.embedding_lookup(table, words)
        different, places = tf.unique(tf.reshape(words, [-1]))
        vectors = tf.nn.embedding_lookup(table, different)
        return tf.gather(vectors, tf.reshape(places, tf.shape(words)))

    @tf.function
    def step(words: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.reduce_mean(vectors_of(words), axis=1) - 1.0))
        gradient = tape.gradient(loss, table)
        if adam is None:
            table.scatter_sub(tf.IndexedSlices(RATE * gradient.values, gradient.indices))
        else:
            adam.apply_gradients([(gradient, table)])
        return loss

    return lambda: step(next(batches))


if __name__ == "__main__":
    main(*sys.argv[1:])
