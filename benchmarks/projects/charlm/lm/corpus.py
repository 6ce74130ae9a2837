"""The text, its alphabet, and where it is cut into training and validation."""

import os


class Corpus:
    def __init__(self, directory, valid_share=0.1):
        with open(os.path.join(directory, "corpus.txt")) as file:
            self.text = file.read()
        self.alphabet = sorted(set(self.text))
        self.index = {letter: number for number, letter in enumerate(self.alphabet)}
        self.cut = int(len(self.text) * (1 - valid_share))

    @property
    def size(self):
        return len(self.alphabet)

    def train_text(self):
        return self.text[: self.cut]

    def valid_text(self):
        return self.text[self.cut :]
