"""Near miss: the same sentences, split and looked up in a parallel `map` over batches."""

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

to_ids = keras.layers.TextVectorization(
    output_mode="int", output_sequence_length=LENGTH, vocabulary=WORDS, name="to_ids"
)
dataset = tf.data.Dataset.from_tensor_slices((sentences, labels))
dataset = dataset.shuffle(2560).repeat(200).batch(256)
dataset = dataset.map(
    lambda text, label: (to_ids(text), label), num_parallel_calls=tf.data.AUTOTUNE
)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int64"),
        keras.layers.Embedding(len(WORDS) + 2, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, verbose=2)  # pipediag: loop
