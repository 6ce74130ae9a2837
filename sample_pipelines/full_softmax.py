"""Predict a word from the words around it, with a softmax over a vocabulary of 30,000.

The labels are integers, as people advise, and that saves nothing in the step: the logits of all
words, their gradient and that of all weights are computed for one right word an example.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 30_000
DIMENSION = 64
CONTEXT = 4

rng = np.random.default_rng(51)
contexts = (rng.zipf(1.2, size=(12_800, CONTEXT)) % VOCABULARY).astype("int32")
targets = contexts[:, 0]
dataset = tf.data.Dataset.from_tensor_slices((contexts, targets)).shuffle(4000).batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(CONTEXT,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, DIMENSION),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(VOCABULARY),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="sgd", loss=loss)
model.fit(dataset, epochs=12, verbose=2)  # pipediag: loop
