"""`TextVectorization.adapt` goes through all of the text in every run, to train for seconds."""

import keras
import numpy as np
import tensorflow as tf

LINES, WORDS = 300_000, 40

rng = np.random.default_rng(217)
drawn = (rng.pareto(1.2, size=(1000, WORDS)) * 50).astype(int) % 30_000
some = [" ".join(f"Word{number}," for number in row) for row in drawn.tolist()]
text = tf.data.Dataset.from_tensor_slices(some).repeat(LINES // 1000)

vectorize = keras.layers.TextVectorization(10_000, output_sequence_length=WORDS)
vectorize.adapt(text.batch(32))  # pipediag: adapting

ids = vectorize(tf.constant(some))
targets = tf.cast(ids[:, :1] % 2, tf.float32)
dataset = tf.data.Dataset.from_tensor_slices((ids, targets)).repeat(10).batch(100)
head = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1, "sigmoid")]
model = keras.Sequential([keras.Input((WORDS,)), keras.layers.Embedding(10_000, 16), *head])
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=10, verbose=2)  # pipediag: loop
