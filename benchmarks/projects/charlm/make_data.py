"""Write a text whose characters follow a Markov chain."""

import os

import numpy as np

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;:!?'\"()-\n"


def main(directory="data", length=120_000):
    os.makedirs(directory, exist_ok=True)
    rng = np.random.default_rng(3)
    chances = np.cumsum(rng.dirichlet(np.full(len(LETTERS), 0.05), len(LETTERS)), axis=1)
    state, text = 0, []
    for draw in rng.random(length):
        state = min(int(np.searchsorted(chances[state], draw)), len(LETTERS) - 1)
        text.append(LETTERS[state])
    with open(os.path.join(directory, "corpus.txt"), "w") as file:
        file.write("".join(text))


if __name__ == "__main__":
    main()
