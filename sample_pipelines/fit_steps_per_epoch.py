"""`fit` with `steps_per_epoch` on a repeated dataset: one iterator lives through all epochs.

Sentences are padded and one-hot encoded by a per-sentence `map` that TensorFlow keeps serial
because it draws random positions. The model waits for it.
"""

import keras
import numpy as np
import tensorflow as tf

LENGTH = 64
VOCABULARY = 256

rng = np.random.default_rng(50)
sentences = rng.integers(0, VOCABULARY, size=(4000, 2 * LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=4000).astype("float32")


def random_window(sentence, label):
    start = tf.random.uniform([], 0, LENGTH, dtype=tf.int32)
    window = tf.ensure_shape(sentence[start : start + LENGTH], [LENGTH])
    counts = tf.reduce_sum(tf.one_hot(window, VOCABULARY), axis=0)
    return counts, label


dataset = tf.data.Dataset.from_tensor_slices((sentences, labels))
dataset = dataset.shuffle(4000).repeat()
dataset = dataset.map(random_window)  # pipediag: culprit
dataset = dataset.batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(VOCABULARY,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, steps_per_epoch=100, epochs=15, verbose=2)  # pipediag: loop
