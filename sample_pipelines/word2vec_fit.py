"""Word2Vec-like training: predict a word from the ten around it, `fit` on NumPy arrays.

The softmax over the whole vocabulary, its gradients and Adam's update of the two large
matrices are the work. The arrays are gathered into batches by Keras and cost next to nothing.
"""

import keras
import numpy as np

VOCABULARY = 2000
DIMENSION = 64
CONTEXT = 10
EXAMPLES = 12_800

rng = np.random.default_rng(0)
contexts = rng.zipf(1.3, size=(EXAMPLES, CONTEXT)) % VOCABULARY
contexts = contexts.astype("int32")
targets = keras.utils.to_categorical(contexts[:, 0], VOCABULARY)

model = keras.Sequential(
    [
        keras.Input(shape=(CONTEXT,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, DIMENSION),
        keras.layers.Flatten(),
        keras.layers.Dense(VOCABULARY, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="categorical_crossentropy")
model.fit(contexts, targets, batch_size=128, epochs=10, verbose=2)  # pipediag: loop
