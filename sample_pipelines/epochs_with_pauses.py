"""A `fit` of several epochs whose pipeline TensorFlow tunes: it pauses as it frees each iterator.

Between the epochs nothing runs for up to as long as an epoch has lasted: TensorFlow waits for the
thread that tunes the pipeline, which sleeps. Without tuning, the calls of `map` are as many.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY, LENGTH, BATCHES, BATCH = 5000, 64, 600, 256

rng = np.random.default_rng(91)
words = rng.integers(1, VOCABULARY, size=(BATCHES * BATCH, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=len(words)).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4096)
dataset = dataset.batch(BATCH)
dataset = dataset.map(
    lambda x, y: (tf.where(x < 4000, x, 0), y), num_parallel_calls=tf.data.AUTOTUNE
)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 32),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1536, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
