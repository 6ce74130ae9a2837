"""Text that the model writes after each epoch."""

import keras
import numpy as np


class WriteText(keras.callbacks.Callback):
    def __init__(self, corpus, length, letters=120, temperature=0.7):
        super().__init__()
        self.corpus = corpus
        self.length = length
        self.letters = letters
        self.temperature = temperature

    def on_epoch_end(self, epoch, logs=None):
        rng = np.random.default_rng(epoch)
        begin = rng.integers(len(self.corpus.train_text()) - self.length)
        text = self.corpus.train_text()[begin : begin + self.length]
        for _ in range(self.letters):
            text += self.corpus.alphabet[self._next(text[-self.length :], rng)]
        print(f"epoch {epoch + 1}: ...{text[self.length :]!r}")

    def _next(self, window, rng):
        ids = np.array([[self.corpus.index[letter] for letter in window]], dtype="int32")
        chances = self.model.predict_on_batch(ids)[0].astype("float64")
        logits = np.log(chances + 1e-9) / self.temperature
        weights = np.exp(logits - logits.max())
        return rng.choice(len(weights), p=weights / weights.sum())
