"""Trains tables of embeddings for some steps, and says what the process took at its peak.

python embedding_memory.py STEPS OPTIMIZER ROWSxDIM...
"""

from __future__ import annotations

import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from pipediag.optimizers import LazyAdam

steps, optimizer = int(sys.argv[1]), sys.argv[2]
tables = [tuple(map(int, one.split("x"))) for one in sys.argv[3:]]
BATCH, IDS = 64, 8


def lookup(rows, dim, number):
    """Ids as an input, and their vectors side by side."""
    ids = keras.Input((IDS,), dtype="int32", name=f"ids_{number}")
    vectors = keras.layers.Embedding(rows, dim, name=f"table_{number}")(ids)
    return ids, keras.layers.Flatten()(vectors)


def peak_bytes():
    """The most that was resident of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("This system does not say what a process took at its peak.")


inputs, vectors = zip(*(lookup(*table, number) for number, table in enumerate(tables)), strict=True)
joined = keras.layers.Concatenate()(vectors) if len(vectors) > 1 else vectors[0]
model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dense(32)(joined)))
model.compile(LazyAdam() if optimizer == "LazyAdam" else optimizer, "mse")

generator = np.random.default_rng(0)
ids = tuple(generator.integers(0, rows, (BATCH, IDS), "int32") for rows, _ in tables)
data = tf.data.Dataset.from_tensors((ids, np.zeros((BATCH, 1), "float32"))).repeat(steps)
model.fit(data, verbose=0)
print("peak", peak_bytes(), flush=True)
