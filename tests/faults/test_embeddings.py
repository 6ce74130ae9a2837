"""Batches whose ids are counted: the training, its data and its errors stay the same, and what is
said of ids is what a plain pass over the same batches finds."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

ROWS, LENGTH, BATCH, STEPS = 400, 12, 16, 150

FIT = f"""
    import hashlib

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(3)
    ids = np.minimum(rng.zipf(1.4, ({STEPS * BATCH}, {LENGTH})) - 1, {ROWS - 1})
    np.save("ids.npy", ids)
    wanted = rng.random({STEPS * BATCH})
    dataset = tf.data.Dataset.from_tensor_slices((ids, wanted)).batch({BATCH})
    model = keras.Sequential([
        keras.Input(({LENGTH},), dtype="int32"),
        keras.layers.Embedding({ROWS}, 8), keras.layers.Dropout(0.3),
        keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1),
    ])
    model.compile("adam", "mse")
    history = model.fit(dataset, epochs=4, verbose=0)
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("FACT losses", history.history["loss"])
    print("FACT weights", hashlib.sha256(weights).hexdigest())
    print("FACT next", keras.layers.Dense(1).name, np.random.rand(), tf.random.uniform(()).numpy())
"""

TABLE = f"""
    import hashlib

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(3)
    ids = rng.integers(0, {ROWS}, ({STEPS * BATCH}, {LENGTH}))
    table = tf.Variable(tf.random.normal(({ROWS}, 8)), name="mine")
    optimizer = keras.optimizers.Adam()
"""
OWN_LOOP = f"""{TABLE}
    np.save("ids.npy", ids)
    dataset = tf.data.Dataset.from_tensor_slices(ids).batch({BATCH})

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.embedding_lookup(table, batch) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
        return loss

    for epoch in range(100):
        losses = [float(step(batch)) for batch in dataset]
    print("FACT losses", losses[-1], len(losses))
    print("FACT weights", hashlib.sha256(table.numpy().tobytes()).hexdigest())
"""


@pytest.mark.parametrize("script", [FIT, OWN_LOOP], ids=["fit", "own loop"])
def test_a_training_whose_ids_are_looked_at_is_the_native_one(
    make_case: MakeCase, script: str
) -> None:
    analysed = make_case(script).alike("--run-to-end", "--budget", "0")
    (table,) = analysed.session.embeddings
    assert (table.rows, table.dim, table.gradient, table.update) == (ROWS, 8, "sparse", "dense")
    assert table.slot_bytes == 2 * table.table_bytes == 2 * ROWS * 8 * 4
    assert table.ids is not None, table.ids_missing
    ids = table.ids
    data = np.load(analysed.directory / "ids.npy").reshape(STEPS, -1)
    numbers = range(ids.first_batch, ids.last_batch + 1)
    assert len(numbers) == ids.batches
    batches = [data[(number - 1) % STEPS].tolist() for number in numbers]
    flat = [id for batch in batches for id in batch]
    assert ids.lookups == len(flat)
    assert ids.unique_per_step == pytest.approx(np.mean([len(set(one)) for one in batches]))
    assert ids.zero_percent == pytest.approx(100 * flat.count(0) / len(flat))


EAGER = f"""{TABLE}
    drawn = [0]
    def batches():
        for at in range(0, len(ids), {BATCH}):
            drawn[0] += 1
            yield ids[at : at + {BATCH}]
    spec = tf.TensorSpec(({BATCH}, {LENGTH}), "int64")
    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec)

    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.dropout(tf.gather(table, batch), 0.3) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
        return loss

    for epoch in range(3):
        losses = [float(step(batch)) for batch in dataset]
    print("FACT losses", losses[-1], len(losses), drawn)
    print("FACT weights", hashlib.sha256(table.numpy().tobytes()).hexdigest())
    print("FACT next", np.random.rand(), tf.random.uniform(()).numpy())
"""


def test_a_training_without_any_function_is_the_native_one(make_case: MakeCase) -> None:
    analysed = make_case(EAGER).alike("--run-to-end", "--budget", "0")
    assert analysed.session.embeddings == []
    assert analysed.session.embeddings_missing is not None
