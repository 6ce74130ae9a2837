"""A text is split, counted and turned into ids in plain Python in every run, before it trains."""

from collections import Counter

import keras
import numpy as np
import tensorflow as tf

LINES, WORDS, LONGEST = 500_000, 30, 24

rng = np.random.default_rng(215)
drawn = (rng.pareto(1.2, size=(1000, WORDS)) * 50).astype(int) % 20_000
text = [" ".join(f"Word{number}," for number in row) for row in drawn.tolist()] * (LINES // 1000)


def to_ids(lines):
    counts = Counter()
    for line in lines:  # pipediag: counting
        counts.update(word.strip(".,").lower() for word in line.split())  # pipediag: counting
    index = {word: number for number, (word, _) in enumerate(counts.most_common(5000), start=1)}
    ids = np.zeros((len(lines), LONGEST), np.int32)
    for row, line in enumerate(lines):  # pipediag: counting
        words = [word.strip(".,").lower() for word in line.split()][:LONGEST]  # pipediag: counting
        ids[row, : len(words)] = [index.get(word, 0) for word in words]  # pipediag: counting
    return ids


ids = to_ids(text)
dataset = tf.data.Dataset.from_tensor_slices((ids, ids[:, :1] % 2)).take(20_000).batch(200)
table = keras.layers.Embedding(5001, 32)
head = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1, "sigmoid")]
model = keras.Sequential([keras.Input((LONGEST,), dtype="int32"), table, *head])
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=5, verbose=2)  # pipediag: loop
