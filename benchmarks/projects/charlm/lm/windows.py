"""Windows of the text as one-hot vectors, and the letter that follows each."""

import keras
import numpy as np
from keras.utils import to_categorical


class Windows(keras.utils.PyDataset):
    def __init__(self, corpus, text, length, stride, batch_size, shuffle=True):
        super().__init__()
        self.corpus = corpus
        self.text = text
        self.length = length
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.starts = np.arange(0, len(text) - length - 1, stride)
        self.on_epoch_end()

    def __len__(self):
        return len(self.starts) // self.batch_size

    def __getitem__(self, number):
        chosen = self.starts[number * self.batch_size : (number + 1) * self.batch_size]
        inputs, targets = [], []
        for start in chosen:
            window = self.text[start : start + self.length]
            ids = [self.corpus.index[letter] for letter in window]
            inputs.append(to_categorical(ids, num_classes=self.corpus.size))
            following = self.corpus.index[self.text[start + self.length]]
            targets.append(to_categorical(following, num_classes=self.corpus.size))
        return np.array(inputs), np.array(targets)

    def on_epoch_end(self):
        if self.shuffle:
            np.random.shuffle(self.starts)
