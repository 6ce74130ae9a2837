"""Much that reads a dataset and is not training: a preview, `adapt`, lists, `evaluate`, `predict`.

The training comes last. It tokenises one sentence at a time, and the lookup keeps that `map`
serial.
"""

import keras
import numpy as np
import tensorflow as tf

LENGTH = 48

rng = np.random.default_rng(58)
words = np.array([f"word{number}" for number in range(500)])
sentences = [" ".join(row) for row in words[rng.integers(0, 500, size=(6400, LENGTH))]]
labels = rng.integers(0, 2, size=6400).astype("float32")

texts = tf.data.Dataset.from_tensor_slices(sentences).batch(256)
vectorise = keras.layers.TextVectorization(max_tokens=600, output_sequence_length=LENGTH)
vectorise.adapt(texts)


def encode(sentence, label):
    return vectorise(sentence), label


examples = tf.data.Dataset.from_tensor_slices((sentences, labels))
for sentence, label in examples.take(1):
    print("first example:", sentence.numpy()[:40], float(label))
lengths = [len(sentence.numpy().split()) for sentence, _ in examples.take(500)]
print("longest of 500:", max(lengths))

dataset = examples.shuffle(6400)
dataset = dataset.map(encode)  # pipediag: culprit
dataset = dataset.batch(128)
held_out = examples.take(640).batch(128).map(encode)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int64"),
        keras.layers.Embedding(600, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
print("before:", model.evaluate(held_out, verbose=0))
print("scores:", model.predict(held_out, verbose=0)[:3, 0])
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
