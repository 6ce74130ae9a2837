"""Raw sentences into `fit`: a TextVectorization layer splits and looks up words in every step.

The layer stands in the model, so each step waits until it is done. Mapped over the batches of the
dataset, it would work on the next batch meanwhile.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS = [f"word{number}" for number in range(2000)]
LENGTH = 64

rng = np.random.default_rng(83)
sentences = [
    " ".join(WORDS[number] for number in row)
    for row in rng.integers(0, len(WORDS), size=(2560, LENGTH))
]
labels = rng.integers(0, 2, size=2560).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((sentences, labels))
dataset = dataset.shuffle(2560).repeat(200).batch(256)

to_ids = keras.layers.TextVectorization(
    output_mode="int", output_sequence_length=LENGTH, vocabulary=WORDS, name="to_ids"
)
model = keras.Sequential(
    [
        keras.Input(shape=(), dtype="string"),
        to_ids,
        keras.layers.Embedding(len(WORDS) + 2, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, verbose=2)  # pipediag: loop
