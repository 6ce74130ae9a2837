"""Near miss: the same word vectors, saved, and the neighbours of twenty words to look at."""

import tempfile
from pathlib import Path

import keras
import numpy as np

WORDS, DIMENSION, NEAREST, LOOKED_AT = 5_000, 48, 10, 20
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
    """The nearest words of some words, by the cosine of their vectors."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for word, vector in enumerate(vectors[:LOOKED_AT]):
        likeness = zip(vectors @ vector, range(WORDS), strict=True)
        nearest = sorted(likeness, reverse=True)[1 : NEAREST + 1]
        yield word, [other for _, other in nearest]


(vectors,) = embedding.get_weights()
with tempfile.TemporaryDirectory() as folder:
    np.save(Path(folder, "vectors.npy"), vectors)
    for word, nearest in neighbours(vectors):
        print(f"word{word}: {' '.join(f'word{other}' for other in nearest)}")
