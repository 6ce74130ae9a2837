"""Steps of one embedding model under Keras' optimizer and the row-wise one, block by block.

    python -m benchmarks.update_arms PLAN

Both arms live in this process and take turns in random order, so that neither a process' memory nor
the machine's drift tells them apart. Prints a JSON object a block.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

ARMS = ("keras", "lazy")
BATCH, IDS = 256, 20
"""Examples of a batch, and ids of each: uniform over the table, so that few come twice."""
BATCHES = 64
WARMUP_STEPS = 3
FEWEST_STEPS = 5


@dataclass(frozen=True)
class Plan:
    """A table, how it is looked up and updated, and how long that is timed."""

    optimizer: str
    """As Keras names it."""
    arguments: dict[str, Any]
    arms: list[str]
    rows: int
    dim: int
    lookup: str
    """`layer`, Keras' own Embedding, or `rows`, which does not copy the table."""
    rounds: int
    block_s: float
    jit: bool = False


@dataclass(frozen=True)
class Block:
    arm: str
    round: int
    ms_per_step: float


@dataclass(frozen=True)
class Framework:
    """What ran the blocks; the first line that is printed."""

    python: str
    tensorflow: str
    keras: str
    devices: list[list[str]]
    """Name and kind of each."""


def main(plan_json: str) -> None:
    """Time the arms of the plan."""
    plan = Plan(**json.loads(plan_json))
    print(json.dumps(asdict(framework())))
    steps = {arm: training_step(plan, arm) for arm in plan.arms}
    time_in_turns(steps, plan.rounds, plan.block_s)


def time_in_turns(steps: Mapping[str, Callable[[], Any]], rounds: int, block_s: float) -> None:
    """Warm all arms up, then print a block of each, in another order in each round."""
    for step in steps.values():
        run_steps(step, 0.0, WARMUP_STEPS)
    for number in range(rounds):
        for arm in random.Random(number).sample(list(steps), len(steps)):
            took_ms = run_steps(steps[arm], block_s, FEWEST_STEPS)
            print(json.dumps(asdict(Block(arm, number, took_ms))), flush=True)


def run_steps(step: Callable[[], Any], block_s: float, fewest: int) -> float:
    """Milliseconds of a step, over as many as the block holds."""
    begin = time.perf_counter()
    steps = 0
    while steps < fewest or time.perf_counter() - begin < block_s:
        loss = step()
        steps += 1
    # Only then has a device that works ahead done them all.
    float(loss)
    return (time.perf_counter() - begin) / steps * 1e3


def training_step(plan: Plan, arm: str) -> Callable[[], Any]:
    """One step of an embedding, a mean and a sum, on batches that are there already."""
    import keras
    import numpy as np
    import tensorflow as tf

    ids = keras.Input((IDS,), dtype="int32")
    words = lookup_layer(plan.lookup)(plan.rows, plan.dim)(ids)
    result = keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(words))
    model = keras.Model(ids, result)
    optimizer = optimizer_of(plan.optimizer, plan.arguments, arm)
    variables = model.trainable_variables
    optimizer.build(variables)
    drawn = np.random.default_rng(0).integers(0, plan.rows, (BATCHES, BATCH, IDS), dtype=np.int32)
    batches = cycle([tf.constant(batch) for batch in drawn])

    @tf.function(jit_compile=plan.jit)
    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(batch, training=True) - 1.0))
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return lambda: step(next(batches))


def lookup_layer(lookup: str) -> Any:
    """The class of the layer that looks up rows, by a plan's word."""
    import keras
    import tensorflow as tf

    class RowLookup(keras.layers.Embedding):
        def call(self, inputs: Any) -> Any:
            return tf.nn.embedding_lookup(self.embeddings.value, inputs)

    return RowLookup if lookup == "rows" else keras.layers.Embedding


def optimizer_of(name: str, arguments: dict[str, Any], arm: str) -> Any:
    """The optimizer of an arm, by the name that Keras has for its own."""
    import keras

    import pipediag.optimizers

    if arm == "keras":
        return getattr(keras.optimizers, name)(**arguments)
    return getattr(pipediag.optimizers, f"Lazy{name}")(**arguments)


def framework() -> Framework:
    """What runs here."""
    import platform

    import keras
    import tensorflow as tf

    devices = [[device.name, device.device_type] for device in tf.config.list_physical_devices()]
    return Framework(platform.python_version(), tf.__version__, keras.__version__, devices)


if __name__ == "__main__":
    main(*sys.argv[1:])
