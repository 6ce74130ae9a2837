"""Word vectors trained on pairs, and then the neighbours of every word, one word after the other.

To sort the vocabulary for each of its words takes longer than the training. Nothing of it needs
the machine that trains: a script of its own could do it with the saved vectors.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np

WORDS, DIMENSION, NEAREST = 5_000, 48, 10
PAIRS, EPOCHS = 256_000, 4

rng = np.random.default_rng(91)
ranks = rng.zipf(1.2, size=2 * PAIRS) % WORDS
centres, contexts = ranks.astype("int32").reshape(2, PAIRS)
together = (np.abs(centres - contexts) < WORDS // 8).astype("float32")

centre = keras.Input(shape=(), dtype="int32")
context = keras.Input(shape=(), dtype="int32")
embedding = keras.layers.Embedding(WORDS, DIMENSION)
score = keras.layers.Dot(axes=1)([embedding(centre), embedding(context)])
model = keras.Model([centre, context], keras.layers.Activation("sigmoid")(score))
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit([centres, contexts], together, batch_size=512, epochs=EPOCHS, verbose=2)  # pipediag: loop


def neighbours(vectors):
    """The nearest words of each word, by the cosine of their vectors."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for word, vector in enumerate(vectors):  # pipediag: neighbours
        likeness = zip(vectors @ vector, range(WORDS), strict=True)  # pipediag: neighbours
        nearest = sorted(likeness, reverse=True)[1 : NEAREST + 1]  # pipediag: neighbours
        yield word, [other for _, other in nearest]  # pipediag: neighbours


(vectors,) = embedding.get_weights()
with tempfile.TemporaryDirectory() as folder:
    np.save(Path(folder, "vectors.npy"), vectors)
    with Path(folder, "neighbours.txt").open("w", encoding="utf-8") as file:
        for word, nearest in neighbours(vectors):
            file.write(f"word{word} {' '.join(f'word{other}' for other in nearest)}\n")
