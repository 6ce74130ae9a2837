"""Random masking of words, and a cache behind it that freezes the first epoch's masks.

Speed is not the trouble here, the convolutions are the work. The masks that should differ in
every epoch are drawn once: the cache belongs before the random `map`.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 2000
LENGTH = 48

rng = np.random.default_rng(34)
words = rng.integers(1, VOCABULARY, size=(3200, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=3200).astype("float32")


def mask_words(tokens, label):
    keep = tf.random.uniform([LENGTH]) > 0.15
    return tf.where(keep, tokens, 0), label


dataset = tf.data.Dataset.from_tensor_slices((words, labels))
dataset = dataset.map(mask_words, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: misplaced
dataset = dataset.cache()  # pipediag: misplaced
dataset = dataset.shuffle(3200)
dataset = dataset.batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 64),
        keras.layers.Conv1D(256, 5, activation="relu"),
        keras.layers.Conv1D(256, 5, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=15, verbose=2)  # pipediag: loop
