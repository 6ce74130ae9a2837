"""Sentences split and hashed one at a time, then padded to the longest of a batch."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(103)
lengths = rng.integers(4, 20, size=12_800)
sentences = [" ".join(f"w{word}" for word in rng.integers(0, 5000, size=n)) for n in lengths]
labels = rng.integers(0, 2, size=12_800).astype("float32")


def encode(sentence, label):
    words = tf.strings.split(tf.strings.lower(sentence))
    return tf.strings.to_hash_bucket_fast(words, 4999) + 1, label


dataset = tf.data.Dataset.from_tensor_slices((sentences, labels))
dataset = dataset.shuffle(12_800)
dataset = dataset.map(encode)  # pipediag: culprit
dataset = dataset.padded_batch(256)

model = keras.Sequential(
    [keras.Input(shape=(None,), dtype="int64"), keras.layers.Embedding(5000, 8)]
)
model.add(keras.layers.GlobalAveragePooling1D())
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
