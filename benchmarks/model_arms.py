"""Steps of two whole models with tables under Keras' Adam and LazyAdam, block by block.

    python -m benchmarks.model_arms PLAN

A recommender with eight tables between a thousand rows and half a million, and skip-gram with
negative samples. Ids follow Zipf's law, as words and visits do. The arms live in one process and
take turns in random order, as those of `benchmarks.update_arms`. Prints a JSON object a line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

from benchmarks.update_arms import (
    ARMS,
    framework,
    lookup_layer,
    optimizer_of,
    time_in_turns,
)

BATCH = 1024
BATCHES = 32
ZIPF = 1.1
"""Own choice of the exponent: near that of words in a text."""
RECOMMENDER_ROWS = (500_000, 300_000, 200_000, 100_000, 50_000, 20_000, 5_000, 1_000)
RECOMMENDER_DIM, NUMBERS = 32, 13
WORDS, WORD_DIM, NEGATIVES = 200_000, 128, 5


@dataclass(frozen=True)
class ModelPlan:
    """A model, how its tables are looked up, and how long that is timed."""

    model: str
    lookup: str
    rounds: int
    block_s: float
    jit: bool = False
    scale: float = 1.0
    """Of the rows of all tables."""


@dataclass(frozen=True)
class Tables:
    """What the model has of tables; the second line that is printed."""

    tables: int
    rows: int
    bytes: int
    rows_a_step: float
    """Different rows that a batch looks up, of all tables."""


@dataclass(frozen=True)
class Built:
    """A model with its loss, and batches for it."""

    model: Any
    loss: Callable[[Any, Any], Any]
    """Of what the model gives, and labels."""
    batches: list[tuple[Any, Any]]
    """Inputs and labels."""
    tables: Tables


def main(plan_json: str) -> None:
    """Time the arms of the plan."""
    plan = ModelPlan(**json.loads(plan_json))
    print(json.dumps(asdict(framework())))
    built = {arm: MODELS[plan.model](plan) for arm in ARMS}
    print(json.dumps(asdict(built[ARMS[0]].tables)), flush=True)
    steps = {arm: training_step(plan, arm, built[arm]) for arm in ARMS}
    time_in_turns(steps, plan.rounds, plan.block_s)


def training_step(plan: ModelPlan, arm: str, built: Built) -> Callable[[], Any]:
    """One step on batches that are there already."""
    import tensorflow as tf

    optimizer = optimizer_of("Adam", {}, arm)
    variables = built.model.trainable_variables
    optimizer.build(variables)
    batches = cycle(built.batches)

    @tf.function(jit_compile=plan.jit)
    def step(inputs: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = built.loss(built.model(inputs, training=True), labels)
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return lambda: step(*next(batches))


def recommender(plan: ModelPlan) -> Built:
    """Eight tables and thirteen numbers into a network of three layers; one click an example."""
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    sizes = [scaled(rows, plan) for rows in RECOMMENDER_ROWS]
    ids = keras.Input((len(sizes),), dtype="int32")
    numbers = keras.Input((NUMBERS,))
    table = lookup_layer(plan.lookup)
    vectors = [table(rows, RECOMMENDER_DIM)(ids[:, at]) for at, rows in enumerate(sizes)]
    hidden = keras.layers.Concatenate()([*vectors, numbers])
    for width in (256, 128):
        hidden = keras.layers.Dense(width, activation="relu")(hidden)
    model = keras.Model([ids, numbers], keras.layers.Dense(1)(hidden))
    drawn = [np.stack([zipf(rng, rows, (BATCH,)) for rows in sizes], 1) for _ in range(BATCHES)]
    batches = [
        (
            [tf.constant(one), tf.constant(rng.normal(size=(BATCH, NUMBERS)), "float32")],
            tf.constant(rng.integers(0, 2, (BATCH, 1)), "float32"),
        )
        for one in drawn
    ]
    touched = [sum(len(np.unique(one[:, at])) for at in range(len(sizes))) for one in drawn]
    return Built(model, _click_loss, batches, _tables(sizes, RECOMMENDER_DIM, touched))


def skip_gram(plan: ModelPlan) -> Built:
    """A word and its neighbour, against words that were drawn: two tables and a product."""
    import keras
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(1)
    rows = scaled(WORDS, plan)
    word = keras.Input((1,), dtype="int32")
    candidates = keras.Input((1 + NEGATIVES,), dtype="int32")
    table = lookup_layer(plan.lookup)
    vectors = [table(rows, WORD_DIM)(ids) for ids in (word, candidates)]
    products = keras.layers.Dot(axes=2)(vectors)
    model = keras.Model([word, candidates], keras.layers.Flatten()(products))
    labels = np.repeat([[1.0] + [0.0] * NEGATIVES], BATCH, axis=0).astype("float32")
    drawn = [
        (zipf(rng, rows, (BATCH, 1)), zipf(rng, rows, (BATCH, 1 + NEGATIVES)))
        for _ in range(BATCHES)
    ]
    batches = [([tf.constant(one) for one in pair], tf.constant(labels)) for pair in drawn]
    touched = [sum(len(np.unique(one)) for one in pair) for pair in drawn]
    return Built(model, _click_loss, batches, _tables([rows, rows], WORD_DIM, touched))


MODELS: dict[str, Callable[[ModelPlan], Built]] = {
    "recommender": recommender,
    "skip-gram": skip_gram,
}


def scaled(rows: int, plan: ModelPlan) -> int:
    """Of one table, ten at least."""
    return max(10, round(rows * plan.scale))


def zipf(rng: Any, rows: int, shape: tuple[int, ...]) -> Any:
    """Ids of which low ones are frequent."""
    return ((rng.zipf(ZIPF, shape) - 1) % rows).astype("int32")


def _click_loss(given: Any, labels: Any) -> Any:
    import tensorflow as tf

    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, given))


def _tables(sizes: list[int], dim: int, touched: list[int]) -> Tables:
    return Tables(len(sizes), sum(sizes), 4 * dim * sum(sizes), sum(touched) / len(touched))


if __name__ == "__main__":
    main(*sys.argv[1:])
