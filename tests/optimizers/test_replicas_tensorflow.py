"""Two replicas train as one does; a process of its own, as its devices are set at the start."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import contextlib, json
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras
from pipediag.optimizers import LazyAdamW

ids = np.random.default_rng(1).integers(0, 20, (32, 5))
labels = (ids % 2).mean(axis=1)
data = tf.data.Dataset.from_tensor_slices((ids, labels)).batch(16)

def trained(strategy, clipnorm):
    keras.utils.set_random_seed(3)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = keras.Sequential([
            keras.Input((5,), dtype="int32"),
            keras.layers.Embedding(40, 4),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ])
        optimizer = LazyAdamW(0.05, weight_decay=0.1, clipnorm=clipnorm)
        model.compile(optimizer, "mse", jit_compile=False)
    first = model.layers[0].embeddings.numpy()
    model.fit(data, epochs=3, verbose=0)
    copies = [model.layers[0].embeddings.value]
    if strategy:
        copies = strategy.experimental_local_results(copies[0])
    return first, [copy.numpy() for copy in copies], model.layers[2].kernel.numpy()

# Keras clips what a replica has of the gradient: a norm this large changes nothing.
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
first, (table, other), kernel = trained(mirrored, 1e6)
_, (alone,), kernel_alone = trained(None, 1e6)
print(json.dumps({
    "copies_apart": float(abs(table - other).max()),
    "table_apart": float(abs(table - alone).max()),
    "kernel_apart": float(abs(kernel - kernel_alone).max()),
    "moved": float(abs(table[:20] - first[:20]).min(axis=1).max()),
    "rows_of_no_batch_moved": float(abs(table[20:] - first[20:]).max()),
}))
"""


def test_replicas_have_the_tables_that_one_would_have() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["copies_apart"] == 0.0
    assert told["table_apart"] < 1e-5
    assert told["kernel_apart"] < 1e-5
    assert told["moved"] > 0.01
    assert told["rows_of_no_batch_moved"] == 0.0
