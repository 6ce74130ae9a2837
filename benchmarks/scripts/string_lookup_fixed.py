"""`string_lookup.py` with the lookup behind the batch, its calls left to AUTOTUNE."""

import keras
import numpy as np
import tensorflow as tf

WORDS = [f"word{number}" for number in range(2000)]
rng = np.random.default_rng(21)
sentences = [" ".join(rng.choice(WORDS, 8)) for _ in range(12_800)]
labels = rng.integers(0, 2, size=12_800).astype("float32")
vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(1, len(WORDS) + 1)), default_value=0
)


def encode(sentence, label):
    return vocabulary.lookup(tf.strings.split(sentence).to_tensor(shape=[None, 8])), label


dataset = tf.data.Dataset.from_tensor_slices((sentences, labels))
dataset = dataset.shuffle(12_800).batch(128)
dataset = dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE)

model = keras.Sequential([keras.Input(shape=(8,), dtype="int32"), keras.layers.Embedding(2001, 64)])
model.add(keras.layers.Flatten())
model.add(keras.layers.Dense(1024, activation="relu"))
model.add(keras.layers.Dense(1024, activation="relu"))
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
