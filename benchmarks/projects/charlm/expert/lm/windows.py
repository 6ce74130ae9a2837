"""Windows of the text as ids, and the letter that follows each."""

import keras
import numpy as np


class Windows(keras.utils.PyDataset):
    def __init__(self, corpus, text, length, stride, batch_size, shuffle=True):
        super().__init__()
        ids = np.array([corpus.index[letter] for letter in text], dtype="int32")
        self.windows = np.lib.stride_tricks.sliding_window_view(ids[:-1], length)
        self.following = ids[length:]
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.starts = np.arange(0, len(text) - length - 1, stride)
        self.on_epoch_end()

    def __len__(self):
        return len(self.starts) // self.batch_size

    def __getitem__(self, number):
        chosen = self.starts[number * self.batch_size : (number + 1) * self.batch_size]
        return self.windows[chosen], self.following[chosen]

    def on_epoch_end(self):
        if self.shuffle:
            np.random.shuffle(self.starts)
