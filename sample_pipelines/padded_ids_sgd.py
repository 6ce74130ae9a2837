"""An embedding as it should be: a large table under SGD, ids that stay integers, zeros at the end.

Mixed precision, a mask, ids up to the last row and a large table are all there, and none of them
does harm: SGD writes the rows of the batch alone.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 60_000
LENGTH = 20

keras.mixed_precision.set_global_policy("mixed_bfloat16")
rng = np.random.default_rng(74)
words = rng.integers(1, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
words[:, 0] = VOCABULARY - 1
lengths = rng.integers(5, LENGTH + 1, size=(25_600, 1))
words[np.arange(LENGTH) >= lengths] = 0
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 64, mask_zero=True),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid", dtype="float32"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=10, verbose=2)  # pipediag: loop
