"""Steps whose operations are listened to, and left in the middle: nobody listens any more in a
child that they fork, nor in what the script runs after them."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

LEFT = """
    import os

    import keras
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context, execute

    table = tf.Variable(tf.random.normal((400, 8)))
    optimizer = keras.optimizers.Adam()
    dataset = tf.data.Dataset.from_tensor_slices(np.random.randint(0, 400, (32_000, 4))).batch(8)

    def listeners():
        return len(context.context().op_callbacks), execute.execute.__name__

    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.gather(table, batch) ** 2)
        listened = bool(context.context().op_callbacks)
        optimizer.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
        return listened

    for number, batch in enumerate(dataset):
        if step(batch) or number == 3_999:
            print("listened to", listeners())
            break
    if os.fork() == 0:
        print("FACT in the child", listeners(), flush=True)
        os._exit(0)
    os.wait()
    total = tf.constant(0.0)
    for _ in range(12_000):
        total += 1.0
    print("FACT afterwards", float(total), listeners())
"""


def test_a_step_that_is_left_is_listened_to_no_longer(make_case: MakeCase) -> None:
    case = make_case(LEFT)
    native = case.natively()
    analysed = case.analysed("--run-to-end", "--budget", "0")

    assert len(native.facts) == 2, native.stderr
    assert "listened to (1, 'execute_with_callbacks')" in analysed.stdout, analysed.stderr
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
