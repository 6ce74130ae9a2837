"""Loops without a function for each step: run eagerly, or counted inside a function, the training
is the native one."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

ROWS, LENGTH, BATCH, STEPS = 400, 12, 16, 150

DATA = f"""
    import hashlib

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(3)
    ids = rng.integers(0, {ROWS}, ({STEPS * BATCH}, {LENGTH}))
    drawn = [0]
    def batches():
        for at in range(0, len(ids), {BATCH}):
            drawn[0] += 1
            yield ids[at : at + {BATCH}]
    spec = tf.TensorSpec(({BATCH}, {LENGTH}), "int64")
    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec)
    table = tf.Variable(tf.random.normal(({ROWS}, 8)), name="mine")
    optimizer = keras.optimizers.Adam()

    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.dropout(tf.gather(table, batch), 0.3) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
        return loss
"""
EAGER = (
    DATA
    + """
    for epoch in range(3):
        losses = [float(step(batch)) for batch in dataset]
    print("FACT losses", losses[-1], len(losses), drawn)
    print("FACT weights", hashlib.sha256(table.numpy().tobytes()).hexdigest())
    print("FACT next", np.random.rand(), tf.random.uniform(()).numpy())
"""
)
IN_GRAPH = (
    DATA
    + """
    traced = [0]

    @tf.function
    def epoch(data):
        traced[0] += 1
        total = tf.constant(0.0)
        for batch in data:
            total += step(batch)
        return total

    losses = [float(epoch(DATA)) for _ in range(40)]
    print("FACT losses", losses, drawn, traced)
    print("FACT weights", hashlib.sha256(table.numpy().tobytes()).hexdigest())
    print("FACT next", np.random.rand(), tf.random.uniform(()).numpy())
"""
)


def test_a_training_without_any_function_is_the_native_one(make_case: MakeCase) -> None:
    case = make_case(EAGER)
    native = case.natively()
    analysed = case.analysed("--run-to-end", "--budget", "0")

    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    assert analysed.session.embeddings == []
    assert analysed.session.embeddings_missing is not None


@pytest.mark.parametrize("data", ["dataset", "iter(dataset)"])
def test_a_training_inside_a_function_is_the_native_one(make_case: MakeCase, data: str) -> None:
    case = make_case(IN_GRAPH.replace("DATA", data))
    native = case.natively()
    analysed = case.analysed("--run-to-end", "--budget", "0")

    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    (table,) = analysed.session.embeddings
    assert (table.rows, table.gradient, table.update) == (ROWS, "sparse", "dense")
    assert table.ids is None
    assert table.ids_missing is not None
