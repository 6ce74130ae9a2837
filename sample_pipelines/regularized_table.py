"""A large Embedding with a regulariser, which adds all of its rows to the loss in every step.

SGD would write the rows of the batch alone, but the gradient of the regulariser is as large as the
table.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 200_000
LENGTH = 20

rng = np.random.default_rng(97)
words = rng.integers(0, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(  # pipediag: culprit
            VOCABULARY, 64, embeddings_regularizer=keras.regularizers.L2(1e-6)
        ),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
